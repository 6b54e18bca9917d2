"""What compiling will take is learnt from what it took, by layers; what is compiled already costs nothing more."""

from dataclasses import replace

import pytest
from tests.synthetic import chain

from ampere.network import Measurement, Meter, Network
from ampere.profiles.profile import Observation
from ampere.profiling.compiling import LAYERS_BESIDES, Compiling
from ampere.profiling.experiment import Experiment

NETWORK = chain(3, 4, 4, 8)
METER = Meter("cpu-time", False)


def of(network: Network) -> Experiment:
    return Experiment(network, {"layers": network.to_json()}, "network")


def seen(network: Network, seconds: float) -> Observation:
    conditions = {"compile_seconds": seconds} if seconds else {}
    return Observation(network, Measurement(1.0, 1.0, 1.0, 1.0, 4, (1.0,), METER, conditions=conditions), "network")


def test_a_runtime_that_does_not_compile_costs_nothing_more():
    assert Compiling(False).seconds(of(NETWORK)) == 0.0


def test_new_shapes_cost_what_their_layers_did():
    compiling, first = Compiling(True), Network(NETWORK.layers[:1], 3)
    compiling.learn(seen(first, 0.5))
    each = 0.5 / (1 + LAYERS_BESIDES)
    assert compiling.seconds(of(NETWORK)) == pytest.approx(each * (len(NETWORK.layers) + LAYERS_BESIDES))


def test_what_is_compiled_is_free_but_only_in_the_same_worker():
    compiling = Compiling(True)
    compiling.learn(seen(NETWORK, 2.0))
    assert compiling.seconds(of(NETWORK)) == 0.0
    assert compiling.seconds(replace(of(NETWORK), allocator="system")) > 0.0
