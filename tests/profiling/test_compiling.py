"""What compiling will take is learnt from what it took, by layers; what is compiled already costs nothing more."""

from dataclasses import replace

import pytest
from tests.synthetic import block, chain

from ampere.core import Network
from ampere.profiling.experiment import Experiment
from ampere.profiling.planner import OVERHEAD_LAYERS, Compiling, time_allocation
from ampere.storage.profile import Observation

NETWORK = chain(3, 4, 4, 8)


def of(network: Network) -> Experiment:
    return Experiment(network, {"layers": network.to_json()}, "network")


def seen(network: Network, seconds: float) -> Observation:
    return Observation(network, block(1.0, compile_seconds=seconds), "network")


def test_a_runtime_that_does_not_compile_costs_nothing_more():
    assert Compiling(False).seconds(of(NETWORK)) == 0.0


def test_new_shapes_cost_what_their_layers_did():
    compiling, first = Compiling(True), Network(NETWORK.layers[:1], 3)
    compiling.learn(seen(first, 0.5))
    each = 0.5 / (1 + OVERHEAD_LAYERS)
    assert compiling.seconds(of(NETWORK)) == pytest.approx(each * (len(NETWORK.layers) + OVERHEAD_LAYERS))


def test_what_is_compiled_is_free_but_only_in_the_same_worker():
    compiling = Compiling(True)
    compiling.learn(seen(NETWORK, 2.0))
    assert compiling.seconds(of(NETWORK)) == 0.0
    assert compiling.seconds(replace(of(NETWORK), allocator="system")) > 0.0
    assert [compiling.is_compiled(of(NETWORK).under(allocator)) for allocator in ("tuned", "system")] == [True, False]


def test_nothing_is_known_as_compiled_where_nothing_is():
    compiling = Compiling(False)
    compiling.learn(seen(NETWORK, 0.0))
    assert not compiling.is_compiled(of(NETWORK))


def test_all_that_was_spent_on_compiling_is_reported():
    compiling = Compiling(True)
    for seconds in (2.0, 0.0, 0.5):
        compiling.learn(seen(NETWORK, seconds))
    assert compiling.spent == 2.5


def test_before_anything_was_compiled_its_time_is_a_guess():
    compiling = Compiling(True)
    assert not compiling.informed
    assert Compiling(False).informed
    compiling.learn(seen(NETWORK, 2.0))
    assert compiling.informed


def test_pieces_are_compiled_only_where_hardly_any_whole_network_could_be():
    cheap, expensive = time_allocation(60.0, 0.0, 1.5), time_allocation(60.0, 0.0, 20.0)
    assert (cheap.pieces, cheap.plans) == (0, False)
    assert expensive.pieces > 0
    assert expensive.plans
