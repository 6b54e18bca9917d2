"""Costs are converted to the reference condition by a learnt share, whose uncertainty is common to all."""

from dataclasses import replace

import numpy as np
import pytest
from tests.synthetic import block, random_chains, true_seconds

from ampere.core import Meter, TrainingSetup
from ampere.estimation.estimator import Estimator
from ampere.estimation.fitting import condition_uncertainty, drift_share_in
from ampere.estimation.normalization import Reference, costs_of, normalized
from ampere.storage.profile import Observation, Profile

METER = Meter("cpu-time", False, "5 W per busy core")
YARDSTICK = 1e-3
REFERENCE = Reference(YARDSTICK)


def observed(network, slowdown, sharing, noise):
    """One observation, paired with a yardstick that was slowed down; the network shares a part of the slowdown."""
    ratio = true_seconds(network) / YARDSTICK * slowdown ** (sharing - 1) * noise
    return Observation(network, block(ratio * YARDSTICK * slowdown, YARDSTICK * slowdown, meter=METER), "network")


def profile(sharing, busy, count=40):
    rng = np.random.default_rng(5)
    slowdowns, noise = np.exp(busy * rng.random(count)), np.exp(0.01 * rng.standard_normal(count))
    pairs = zip(random_chains(1, count), slowdowns, noise, strict=True)
    seen = tuple(observed(network, s, sharing, n) for network, s, n in pairs)
    return Profile({"id": "x"}, TrainingSetup(), METER, YARDSTICK, seen, 10.0, ("chains",))


@pytest.mark.parametrize("sharing", [0.6, 1.0])
def test_the_drift_share_is_found_from_networks_trained_once_each(sharing):
    known = profile(sharing, busy=0.5)
    found = drift_share_in(costs_of(known), REFERENCE)
    assert found.part == pytest.approx(sharing, abs=0.15)
    assert found.stddev < 0.15


def test_a_busy_machine_leaves_an_uncertainty_that_a_quiet_one_does_not():
    busy, quiet = profile(0.7, busy=0.5, count=12), profile(0.7, busy=0.02, count=12)
    assert condition_uncertainty(costs_of(quiet), REFERENCE) < 0.005
    assert condition_uncertainty(costs_of(busy), REFERENCE) > 0.01
    estimator, [network] = Estimator(busy), random_chains(9, 1)
    alone = estimator.model.answer(network, True).stddev * estimator.watts
    assert estimator.estimate(network).stddev > alone


def test_without_yardsticks_there_is_nothing_to_move():
    known = profile(0.7, busy=0.5)
    plain = [replace(o, measurement=replace(o.measurement, yardstick=())) for o in known.observations]
    assert condition_uncertainty(normalized(plain, REFERENCE), REFERENCE) == 0.0
