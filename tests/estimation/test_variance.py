"""Shares of an estimate's variance sum to the whole of it; more measurements leave as much of it as was said before."""

import math

import pytest
from tests.synthetic import chain, measured, random_chains

from ampere.estimation.additive import Additive
from ampere.estimation.learning import learn
from ampere.estimation.variance import kept_by_measuring, variance_shares


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


def test_what_measuring_would_bring_is_what_it_brings():
    """The same networks, first thought of and then measured, with what was learnt of noise and of layers kept."""
    before, after = (measured(random_chains(0, count)) for count in (20, 35))
    known = learn(before, evaluations=0)
    more, network = after.networks[20:], chain(3, 24, 48, 24)
    [expected] = kept_by_measuring(known, network, False, [(each, False) for each in more], [len(more)])
    learnt = Additive(after, known.hyper, known.prices)
    own = [variance_shares(model, network, False) for model in (known, learnt)]
    brought = [share.variance * (1 - share.measuring) for share in own]
    noise = own[0].variance * own[0].measuring
    assert expected < 0.95
    assert expected == pytest.approx((brought[1] + noise) / (brought[0] + noise), rel=0.1)


def test_measuring_nothing_brings_nothing_and_noise_always_stays():
    model, network = learn(measured(random_chains(0, 20)), evaluations=0), chain(3, 24, 48, 24)
    assert kept_by_measuring(model, network, False, [], [0]) == [1.0]
    always = variance_shares(model, network, False).measuring
    kept = kept_by_measuring(model, network, False, [(network, False)] * 100, (1, 10, 100))
    assert 1 > kept[0] > kept[1] > kept[2] > always
    assert kept[2] == pytest.approx(always, rel=0.1)
