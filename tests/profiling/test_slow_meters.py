"""A slow counter, simulated: time from short blocks, power from few windows, and joules from both."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

import ampere
from ampere.devices import Worker
from ampere.devices.simulated import PARTS, SimulatedWorker
from ampere.devices.simulated.parts import Counter
from ampere.estimation.normalization import costs_of
from ampere.models.loading import find_space
from ampere.profiling.slow_meters import WINDOWS_AT_LEAST
from ampere.profiling.sources import SpaceSource

NAME = "tx2-with-a-slow-sensor"
SENSOR = Counter("simulated 10 Hz sensor", "module input", 0.1, 0.04, 0.15)


@pytest.fixture(scope="module", autouse=True)
def a_slow_part():
    PARTS[NAME] = replace(PARTS["tx2"], name=NAME, counter=SENSOR)
    yield
    del PARTS[NAME]


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    out = tmp_path_factory.mktemp("slow") / "p.json"
    return ampere.profile("cnn5", device=f"simulated:{NAME}", seconds=60, out=out).profile


def test_most_is_only_timed_and_says_so(profile):
    costs = costs_of(profile)
    read = [c for c in costs if c.joules_rounds]
    timed = [c for c in costs if not c.joules_rounds]
    assert WINDOWS_AT_LEAST <= len(read) < len(timed)
    assert all(c.meter == profile.meter for c in read)
    assert all("time at the yardstick's power" in c.meter.scope for c in timed)


def test_joules_are_within_5_percent_of_the_truth(profile):
    estimator, simulated, rng = ampere.Estimator(profile), SimulatedWorker(NAME), Random("not profiled")
    source = SpaceSource(find_space("cnn5"))
    networks = [source.sample(rng).network for _ in range(40)]
    estimates = [estimator.estimate(network) for network in networks]
    truth = np.array([simulated.truth(network, profile.setup).total.joules for network in networks])
    assert np.mean(np.abs([e.joules for e in estimates] / truth - 1)) < 0.05
    inside = [low <= t <= high for (low, high), t in zip((e.interval for e in estimates), truth, strict=True)]
    assert np.mean(inside) > 0.6


def test_the_layers_still_sum_to_the_total(profile):
    estimate = ampere.Estimator(profile).estimate(SpaceSource(find_space("cnn5")).original().network)
    assert sum(share.joules for share in estimate.layers) == pytest.approx(estimate.joules)


def test_a_profile_like_that_can_be_continued_and_replayed(profile, tmp_path):
    path = tmp_path / "p.json"
    profile.save(path)
    more = ampere.profile("cnn5", device=f"simulated:{NAME}", seconds=5, out=path, seed=1).profile
    assert len(more.observations) > len(profile.observations)
    profile.save(tmp_path / "recorded.json")
    again = ampere.profile(
        "cnn5", device=f"replayed:{tmp_path / 'recorded.json'}", seconds=15, out=tmp_path / "again.json"
    ).profile
    assert sum(bool(c.joules_rounds) for c in costs_of(again)) >= 1


def test_only_time_is_measured_where_joules_are_not_requested():
    device: Worker = SimulatedWorker(NAME)
    network = SpaceSource(find_space("cnn5")).original()
    began = device.clock()
    block = device.block(network.workload, iterations=8, count=False)
    assert {window.joules for window in (*block.target, *block.yardstick)} == {None}
    assert device.clock() - began < SENSOR.window_seconds / 4
    assert device.block(network.workload, iterations=8).joules > 0
