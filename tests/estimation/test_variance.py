"""The shares of an estimate's variance sum to the whole of it."""

import math

import pytest
from tests.synthetic import chain, measured, random_chains

from ampere.estimation.learning import learn
from ampere.estimation.variance import variance_shares


@pytest.mark.parametrize("system", [False, True])
def test_parts_sum_to_the_variance_of_the_answer(system):
    model = learn(measured(random_chains(0, 20)), evaluations=0)
    network = chain(3, 24, 48, 24)
    parts = variance_shares(model, network, system)
    assert sum(parts.layers.values()) + parts.whole + parts.step + parts.measuring == pytest.approx(1)
    stddev = model.hyper.calibration * math.sqrt(parts.variance)
    assert stddev == pytest.approx(model.answer(network, system).stddev, rel=1e-6)


def test_a_layer_unlike_any_that_was_measured_takes_most_of_the_variance():
    model = learn(measured(random_chains(0, 20, largest=16)), evaluations=0)
    parts = variance_shares(model, chain(3, 8, 8, 2048), False)
    largest = max(parts.layers, key=parts.layers.__getitem__)
    assert 2048 in (largest.channels_out, largest.channels_in // 196)
    assert parts.layers[largest] > 0.3
