"""Profiling a simulated device recovers what it knows of itself: networks that were not profiled, and their layers.

How it is counted: `total` is the mean over networks of |estimate - truth| / truth; `layers` is the mean over networks
of the sum of |estimate - truth| over the layers and the constant of a step, over the sum of their truths: errors that
cancel in the total do not cancel here. These are means: single networks with a width of 1 in their middle are up to
40 % off, because hardly any measurement lies near them.
"""

from random import Random

import pytest

import ampere
from ampere.devices.simulated import PARTS, SimulatedWorker
from ampere.estimation.normalization import costs_of
from ampere.models.loading import find_space
from ampere.profiling.sources import SpaceSource

PAPERS_POINTS = 144  # of a 5-layer CNN: 12 for each kind with one free width, 40 for each with two
PAPERS_SECONDS = {"xavier": 421, "tx2": 1211, "phone-android": 1688, "phone-ios": 1012, "server": 268}  # its Table 1
ITS_OWN_SECONDS = 60  # of a device that is not the paper's


@pytest.fixture(scope="module", name="networks")
def unseen_networks():
    source, rng = SpaceSource(find_space("cnn5")), Random("unseen")
    return [source.sample(rng).network for _ in range(30)]


@pytest.mark.parametrize("name", PARTS)
def test_totals_within_5_percent_and_layers_within_10(name, networks, tmp_path):
    profile = ampere.profile("cnn5", device=f"simulated:{name}", out=tmp_path / "profile.json").profile
    read = [cost for cost in costs_of(profile) if cost.joules_rounds]  # others are only timed, in an instant
    assert len(read) <= PAPERS_POINTS
    assert profile.profiling_seconds <= PAPERS_SECONDS.get(name, ITS_OWN_SECONDS)
    assert not {n.layers for n in networks} & {o.network.layers for o in profile.observations}
    estimator, device = ampere.Estimator(profile), SimulatedWorker(name)
    total, layers, seconds = [], [], []
    for network in networks:
        reported, truth = estimator.estimate(network), device.truth(network, profile.setup)
        real = [*(cost.joules for cost in truth.layers), truth.step.joules]
        total.append(abs(reported.joules / sum(real) - 1))
        apart = [abs(share.joules - joules) for share, joules in zip(reported.layers, real, strict=True)]
        layers.append(sum(apart) / sum(real))
        seconds.append(abs(reported.seconds / truth.total.seconds - 1))
    assert sum(total) / len(total) < 0.05
    assert sum(layers) / len(layers) < 0.10
    assert sum(seconds) / len(seconds) < 0.10
