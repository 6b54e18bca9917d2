"""Each baseline recovers a device that obeys its own assumptions."""

from random import Random

import numpy as np
import pytest
from tests.synthetic import chain, observed, random_chains

from ampere.baselines import METHODS, Evidence
from ampere.baselines.counts import layers, parameters
from ampere.baselines.roofline import Roofs
from ampere.core import Layer, Network, work
from ampere.estimation.normalization import Reference, normalized
from ampere.profiling.isolated import alone, operations, stages_of

SEEN, UNSEEN = random_chains(1, 30), random_chains(2, 20)
DEPTHS = [chain(*(Random(d).randint(1, 64) for _ in range(d))) for d in range(2, 12)]


def evidence(observations):
    costs = normalized(observations, Reference(1e-3))
    return Evidence(
        tuple(c.network for c in costs), tuple(c.stage for c in costs), np.array([c.busy_seconds for c in costs])
    )


def off(method, observations, networks, costs):
    """Largest relative error on networks that were not observed."""
    estimate = METHODS[method].fit(evidence(observations))
    return np.max(np.abs(estimate(networks) / np.array(costs) - 1))


@pytest.mark.parametrize(("method", "count"), [("parameters", parameters), ("layers", layers)])
def test_counts_with_a_constant(method, count):
    def costs(networks):
        return 2e-4 + 3e-8 * count(networks)

    observations = [observed(n, c) for n, c in zip(DEPTHS, costs(DEPTHS), strict=True)]
    assert off(method, observations, UNSEEN, costs(UNSEEN)) < 1e-6


def test_a_count_is_never_paid_for():
    """Where larger networks are cheaper, a count explains nothing, and the constant is all there is."""
    observations = [observed(n, 1 / len(n.layers)) for n in DEPTHS]
    estimate = METHODS["layers"].fit(evidence(observations))
    assert np.ptp(estimate(DEPTHS)) == pytest.approx(0)


@pytest.mark.parametrize("device", [(2e10, 1e9, 4e-6, 1e-4), (3e11, 3e9, 2e-5, 1e-3), (5e9, 8e9, 1e-6, 5e-5)])
def test_the_roofline(device):
    true = np.log(device)
    observations = [observed(n, c) for n, c in zip(SEEN, Roofs(SEEN).seconds(true), strict=True)]
    assert off("roofline", observations, UNSEEN, Roofs(UNSEEN).seconds(true)) < 0.02


def test_both_roofs_bind_somewhere():
    seconds = [Roofs(SEEN).seconds(np.log(device)) for device in [(2e10, 1e9, 4e-6, 1e-4), (4e10, 1e9, 4e-6, 1e-4)]]
    assert np.all(seconds[1] <= seconds[0])
    assert np.any(seconds[1] < 0.95 * seconds[0])
    assert np.all(seconds[1] > 0.5 * seconds[0])


def stage_seconds(layer: Layer, stage: str) -> float:
    """A device whose stages are polynomials of a layer's sizes."""
    needed, channels = work(layer), layer.channels_in * layer.channels_out
    moved = sum(tail.values_in + tail.values_out for tail in layer.trailing)
    each = {
        "forward": 4e-6 + needed.flops * 9e-12 + moved * 2e-10,
        "backward": 1e-5 + needed.flops * 2e-11 + channels * 1e-8 + needed.values * 1e-10,
        "update": 3e-6 + needed.parameters * 1e-9,
    }
    return each[stage]


def whole(network: Network) -> float:
    return sum(stage_seconds(layer, stage) for layer in network.layers for stage in stages_of(layer))


def test_neuralpower():
    seen = {layer for n in SEEN[:15] for layer in n.layers}
    observations = [
        observed(alone(layer, stage, "stage").network, stage_seconds(layer, stage), "stage", stage)
        for layer in sorted(seen, key=lambda layer: (layer.kind, layer.channels_in, layer.channels_out))
        for stage in stages_of(layer)
    ]
    assert off("neuralpower", observations, UNSEEN, [whole(n) for n in UNSEEN]) < 0.02


def kernel_seconds(operation: Layer, stage: str) -> float:
    """A device with a step at 32 channels, which no polynomial has."""
    slow = 2.0 if operation.channels_out > 32 else 1.0
    moved = sum(tail.values_in + tail.values_out for tail in operation.trailing)
    return slow * (stage_seconds(operation, stage) + moved * 1e-10)


def test_kernels():
    networks = random_chains(3, 150)
    single = list(dict.fromkeys(o for n in networks for layer in n.layers for o in operations(layer)))
    observations = [
        observed(alone(o, stage, "kernel").network, kernel_seconds(o, stage), "kernel", stage)
        for o in single
        for stage in stages_of(o)
    ]
    costs = [
        sum(kernel_seconds(o, stage) for layer in n.layers for o in operations(layer) for stage in stages_of(o))
        for n in UNSEEN
    ]
    estimate = METHODS["kernels"].fit(evidence(observations))
    assert np.mean(np.abs(estimate(UNSEEN) / np.array(costs) - 1)) < 0.06
