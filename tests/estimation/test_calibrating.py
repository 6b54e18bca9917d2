"""Intervals are calibrated on sorts of networks that the fit never saw, where a profile has several."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from tests.synthetic import chain, measured

from ampere.estimation.additive import Data
from ampere.estimation.features import network_features
from ampere.estimation.learning import CALIBRATED_FROM, FEW_AT_MOST, calibrated, few_factor, learn, sorts_of
from ampere.estimation.prices import known_prices

# Each sort has widths of its own, and costs more or less than its arithmetic says.
SORTS = {"narrow": (1, 6, 1.5), "small": (8, 14, 0.7), "middle": (18, 28, 1.4), "wide": (34, 60, 0.75)}


def of_sorts(named: bool) -> Data:
    rng, networks, factors = Random(1), [], []
    for name, (low, high, factor) in SORTS.items():
        for _ in range(15):
            network = chain(*(rng.randint(low, high) for _ in range(4)))
            networks.append(network.renamed(name) if named else network)
            factors.append(factor)
    data = measured(networks)
    return replace(data, costs=data.costs * np.array(factors))


def judged(data: Data) -> np.ndarray:
    return np.ones(len(data), dtype=bool)


def test_sorts_are_names_that_several_networks_share():
    named, unnamed = of_sorts(True), of_sorts(False)
    assert sorts_of(named, judged(named)) == [*SORTS]
    assert sorts_of(unnamed, judged(unnamed)) == []
    assert sorts_of(named, ~judged(named)) == []
    few = Data(named.networks[:17], named.costs[:17], named.noise[:17], named.system[:17])
    assert sorts_of(few, judged(few)) == []


def test_what_differs_between_sorts_widens_intervals():
    named, unnamed = of_sorts(True), of_sorts(False)
    by_sort, at_random = (calibrated(learn(data), judged(data)).hyper.calibration for data in (named, unnamed))
    assert by_sort > at_random
    assert by_sort == pytest.approx(np.clip(by_sort, 0.7, 2.5))


def test_intervals_of_few_measurements_are_wider():
    factors = [few_factor(count) for count in range(1, CALIBRATED_FROM + 1)]
    assert factors == sorted(factors, reverse=True)
    assert factors[0] > 3.5
    assert factors[-1] == 1.0
    data = of_sorts(False).only(np.arange(60) < 3)
    assert calibrated(learn(data), judged(data)).hyper.calibration == few_factor(3) > 3


def test_few_measurements_that_contradict_each_other_widen_intervals():
    """Costs that follow the physics of a known processor, and the same with every other one three times as high."""
    some = of_sorts(False).only(np.arange(60) < 10)
    some = replace(some, costs=np.array([network_features(n, 16).row @ known_prices() for n in some.networks]))
    apart = replace(some, costs=some.costs * np.where(np.arange(10) % 2, 3.0, 1.0))
    near, far = (calibrated(learn(data, evaluations=0), judged(data)).hyper.calibration for data in (some, apart))
    assert near == few_factor(10)
    assert near < far <= FEW_AT_MOST
