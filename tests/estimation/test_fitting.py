"""Costs are moved to the reference condition by what networks themselves tell, and the doubt of that is shared."""

from dataclasses import replace

import numpy as np
import pytest
from tests.synthetic import random_chains, true_seconds

from ampere.core import Measurement, Meter, TrainingSetup
from ampere.estimation.estimate import Estimator
from ampere.estimation.fitting import condition_uncertainty, drift_share_in
from ampere.storage.profile import Observation, Profile

METER = Meter("cpu-time", False, "5 W per busy core")
YARDSTICK = 1e-3


def observed(network, slowdown, sharing, noise):
    """Trained once beside a yardstick that was so much slower, of which the network shares a part."""
    ratio = true_seconds(network) / YARDSTICK * slowdown ** (sharing - 1) * noise
    seconds = ratio * YARDSTICK
    measurement = Measurement(5 * seconds, seconds, seconds, ratio, 30, (ratio,), METER, (YARDSTICK * slowdown,))
    return Observation(network, measurement, "network")


def profile(sharing, busy, count=40):
    rng = np.random.default_rng(5)
    slowdowns, noise = np.exp(busy * rng.random(count)), np.exp(0.01 * rng.standard_normal(count))
    pairs = zip(random_chains(1, count), slowdowns, noise, strict=True)
    seen = tuple(observed(network, s, sharing, n) for network, s, n in pairs)
    return Profile({"id": "x"}, TrainingSetup(), METER, YARDSTICK, seen, 10.0, ("chains",))


@pytest.mark.parametrize("sharing", [0.6, 1.0])
def test_networks_trained_once_each_tell_what_they_share_of_a_slowdown(sharing):
    known = profile(sharing, busy=0.5)
    found = drift_share_in(known.observations, YARDSTICK)
    assert found.part == pytest.approx(sharing, abs=0.15)
    assert found.doubt < 0.15


def test_a_busy_machine_leaves_a_doubt_that_a_quiet_one_does_not():
    busy, quiet = profile(0.7, busy=0.5, count=12), profile(0.7, busy=0.02, count=12)
    assert condition_uncertainty(quiet.observations, YARDSTICK) < 0.005
    assert condition_uncertainty(busy.observations, YARDSTICK) > 0.01
    estimator, [network] = Estimator(busy), random_chains(9, 1)
    alone = estimator.model.answer(network, True).stddev * estimator.watts
    assert estimator.estimate(network).stddev > alone


def test_without_yardsticks_there_is_nothing_to_move():
    known = profile(0.7, busy=0.5)
    plain = [replace(o, measurement=replace(o.measurement, yardsticks=())) for o in known.observations]
    assert condition_uncertainty(plain, YARDSTICK) == 0.0
