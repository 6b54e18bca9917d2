"""Simulated loop nests: as many multiplications as the layers have, and cycles that a core can reach."""

import importlib.util
import io
import logging
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pytest
from tests.synthetic import conv, linear, measured, random_chains

from ampere.baselines import METHODS, Evidence
from ampere.baselines.answers import answers, names, unavailable
from ampere.baselines.loop_nests import LoopNest, loop_nests
from ampere.core import Layer, Network, work
from ampere.core.errors import RuntimeMissingError
from ampere.core.kinds import KINDS

WITH_PRODUCTS = ("conv", "conv_grouped", "conv_transposed", "linear", "matmul", "attention", "lstm", "gru", "rnn")
NORM = KINDS["norm_batch"].examples[0]
NETWORKS = random_chains(4, 4, depth=1, largest=24)


@pytest.mark.parametrize("layer", [e for kind in WITH_PRODUCTS for e in KINDS[kind].examples], ids=str)
@pytest.mark.parametrize("first", [False, True])
def test_nests_have_the_multiplications_of_the_layer(layer, first):
    if first:  # no gradient goes on to what is before it
        layer = Layer(layer.kind, layer.config, layer.channels_in, layer.channels_out, input_grad=False)
    multiplications = sum(times * nest.multiplications for nest, times in loop_nests(layer))
    assert multiplications == pytest.approx(work(layer).flops / 2)


def test_what_has_no_product_has_no_nest():
    assert loop_nests(NORM) == ()


def test_a_volume_keeps_its_places_and_kernel():
    nest = next(nest for nest, _ in loop_nests(KINDS["conv"].examples[2]))
    assert (nest.B, nest.OY, nest.OX, nest.C) == (3 * 4, 4, 4, 4 * 3)


@pytest.fixture(scope="module")
def simulation():
    pytest.importorskip("zigzag")
    return pytest.importorskip("ampere.baselines.simulation")


NESTS = (
    LoopNest(10, 64, 32, OY=14, OX=14, FY=3, FX=3),
    LoopNest(4, 16, 8, OY=7, OX=7, FY=3, FX=3, stride=(2, 2)).weights(),
    LoopNest(10, 10, 1568),
    LoopNest(5, 7, 8, G=6).exchanged(),
    LoopNest(1, 1, 1),
)


@pytest.mark.parametrize("nest", NESTS, ids=str)
@pytest.mark.parametrize("core", ["CPU", "EDGE"])
def test_a_core_takes_at_least_the_cycles_and_joules_of_its_multipliers(simulation, core, nest):
    core = getattr(simulation, core)
    cycles, picojoules = simulation.simulate(core, nest)
    at_once = np.prod([size for size, _ in core.array])
    assert nest.multiplications / at_once <= cycles < 100 * nest.multiplications
    assert picojoules >= core.multiplication_picojoules * nest.multiplications


def test_channels_that_fill_no_vector_cost_as_much_as_those_that_do(simulation):
    nine, sixteen = (simulation.simulate(simulation.CPU, LoopNest(64, k, 64))[0] for k in (9, 16))
    assert nine > 0.9 * sixteen


def test_weights_that_serve_a_whole_batch_cost_less_each(simulation):
    one, many = (LoopNest(batch, 256, 256) for batch in (1, 64))
    for core in (simulation.CPU, simulation.EDGE):
        (cycles, joules), (cycles_of_many, joules_of_many) = (simulation.simulate(core, nest) for nest in (one, many))
        assert cycles_of_many < 0.7 * 64 * cycles
        assert joules_of_many < 0.7 * 64 * joules


def test_one_factor_is_fitted_and_what_it_describes_is_recovered(simulation):
    for in_joules in (False, True):
        truth = simulation.simulated(simulation.CPU, NETWORKS, in_joules)
        seen = Evidence(tuple(NETWORKS[:2]), ("step",) * 2, 3e-10 * truth[:2], in_joules)
        assert METHODS["simulation"].fit(seen)(NETWORKS) == pytest.approx(3e-10 * truth)


def test_both_cores_describe_a_device_roughly(simulation):
    data = measured(NETWORKS)
    for name in ("simulation", "simulation_edge"):
        said = METHODS[name].fit(Evidence(data.networks, ("step",) * 4, data.costs))(NETWORKS)
        assert np.all(said > 0)
        assert np.mean(np.abs(said / data.costs - 1)) < 0.6


def test_a_network_without_products_costs_nothing_and_is_no_error(simulation):
    seen = Evidence((Network((NORM,), 3),), ("step",), np.array([1.0]))
    assert METHODS["simulation"].fit(seen)(seen.networks) == pytest.approx([0.0])


def test_nothing_is_printed_and_logging_stays_as_it_was(simulation):
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        simulation.simulate(simulation.CPU, LoopNest(3, 5, 7))
    assert said.getvalue() == ""
    assert logging.root.manager.disable == 0


def test_it_takes_part_only_where_it_is_named(simulation, monkeypatch):
    from tests.baselines.test_answers import USUAL, YARDSTICK

    monkeypatch.setattr(simulation, "simulate", lambda core, nest: (float(nest.multiplications),) * 2)
    network = [Network((conv(3, 8), linear(8 * 196, 10)), 10)]
    assert "simulation" not in answers(USUAL, network, "tuned", YARDSTICK)
    assert answers(USUAL, network, "tuned", YARDSTICK, ["simulation"])["simulation"].joules > 0


def test_without_zigzag_one_line_says_how_to_get_it(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "zigzag" else find(name))
    with pytest.raises(RuntimeMissingError, match=r"simulation cannot run: .*'ampere-energy\[simulation\]'"):
        names("simulation")
    assert "simulation" not in names("all")
    assert "simulation" not in unavailable()  # nobody asked for it
    assert "simulation_edge" in unavailable(slow=True)
