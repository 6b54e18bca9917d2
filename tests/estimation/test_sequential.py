"""Subtraction and summation: with exact costs each layer's own is found, and nothing ever becomes negative."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.synthetic import conv, linear

from ampere.core import Layer, Network, TrailingOp
from ampere.core.errors import UsageError
from ampere.estimation.sequential import KERNELS, Sequential
from ampere.estimation.units import Unit, kind_of

COSTS = {"first": 3e-4, "hidden": 1e-6, "output": 1e-7, "step": 2e-4}


def first(out: int) -> Layer:
    return replace(conv(3, out), input_grad=False)


def cost_of(layer: Layer) -> float:
    if layer.kind == "linear":
        return COSTS["step"] + COSTS["output"] * layer.channels_in
    if not layer.input_grad:
        return COSTS["first"] * (1 + layer.channels_out / 32)
    return COSTS["hidden"] * layer.channels_in * layer.channels_out + 1e-4


def alone(layer: Layer) -> Unit:
    return Unit(((layer,),))


def variants() -> list[Network]:
    outputs = [(linear(c * 196, 10),) for c in (1, 8, 16, 32, 64)]
    inputs = [(first(c), linear(c * 196, 10)) for c in (1, 8, 16, 32)]
    grid = [(a, b) for a in (1, 8, 16, 32) for b in (1, 16, 32, 48, 64)]
    hidden = [(first(a), conv(a, b), linear(b * 196, 10)) for a, b in grid]
    return [Network(layers, 10) for layers in (*outputs, *inputs, *hidden)]


def total(network: Network) -> float:
    return sum(cost_of(layer) for layer in network.layers)


@pytest.fixture(scope="module")
def model() -> Sequential:
    networks = variants()
    return Sequential(networks, np.array([total(n) for n in networks]))


def test_each_layers_cost_is_recovered(model):
    network = Network((first(12), conv(12, 40), conv(40, 24), linear(24 * 196, 10)), 10)
    answer = model.answer(network)
    for layer, seconds in zip(answer.layers, answer.layer_seconds, strict=True):
        assert seconds == pytest.approx(cost_of(layer), rel=0.1, abs=2e-5)
    assert answer.seconds == pytest.approx(total(network), rel=0.03)


def test_the_layers_sum_to_the_total_and_the_order_of_measuring_does_not_matter(model):
    network = Network((first(12), conv(12, 12), conv(12, 12), linear(12 * 196, 10)), 10)
    answer = model.answer(network)
    counts = [network.distinct[layer] for layer in answer.layers]
    assert float(np.dot(counts, answer.layer_seconds)) == pytest.approx(answer.seconds)
    shuffled = list(reversed(variants()))
    again = Sequential(shuffled, np.array([total(n) for n in shuffled]))
    assert again.answer(network).seconds == pytest.approx(answer.seconds, rel=1e-6)


def test_repeated_layers_are_doubted_together(model):
    once, thrice = (Network((first(12), *[conv(20, 20)] * n, linear(20 * 196, 10)), 10) for n in (1, 3))
    stddevs = [model.answer(network).stddev for network in (once, thrice)]
    assert stddevs[1] > 1.5 * stddevs[0]


def test_a_hidden_layer_may_stand_first_where_no_input_fits():
    networks = [*variants(), *(Network((conv(c, c, 7), linear(c * 49, 10)), 10) for c in (4, 32))]
    model = Sequential(networks, np.array([total(n) for n in networks]))
    assert model.is_profiled(alone(conv(9, 9, 7)))
    assert not model.is_profiled(alone(conv(9, 9, 5)))


def test_a_layer_of_no_known_kind_is_guessed_and_wholly_doubted(model):
    strange = conv(8, 8, size=5)
    answer = model.answer(Network((strange, linear(200, 10)), 10))
    assert answer.layer_seconds[0] > 0
    assert answer.layer_stddevs[0] == pytest.approx(answer.layer_seconds[0])


def test_what_lies_far_outside_is_reported(model):
    assert model.in_range(alone(conv(16, 100)))
    assert not model.in_range(alone(conv(16, 1000)))
    strange = Network((first(4), conv(16, 1000), conv(8, 8, size=5), linear(10 * 196, 10)), 10)
    assert model.extrapolated(strange) == [conv(16, 1000)]
    assert model.unprofiled(strange) == [conv(8, 8, size=5)]


def test_a_step_with_widths_in_its_config_is_one_kind():
    scales = [Layer("scale", {"values": 8 * c}, c, c) for c in (16, 64)]
    assert kind_of(scales[0]) == kind_of(scales[1])
    assert kind_of(scales[0]) != kind_of(Layer("scale", {"values": 4 * 16}, 16, 16))


@settings(deadline=None, max_examples=25)
@given(st.lists(st.floats(1e-6, 1.0), min_size=29, max_size=29), st.integers(1, 64), st.integers(1, 64))
def test_whatever_was_measured_estimates_are_finite_and_not_negative(costs, a, b):
    networks = variants()
    answer = Sequential(networks, np.array(costs)).answer(Network((first(a), conv(a, b), linear(b * 196, 10)), 10))
    assert np.isfinite(answer.seconds)
    assert np.isfinite(answer.stddev)
    assert answer.seconds >= 0
    assert np.all(answer.layer_seconds >= 0)


def block(width: int, inner: int | None = None) -> list[Layer]:
    """Two convolutions and a sum with what went into them."""
    inner = inner or width
    values = 10 * 196 * width
    shortcut = TrailingOp("elementwise", 2 * values, values)
    return [conv(width, inner), replace(conv(inner, width), trailing=(shortcut,))]


@pytest.fixture(scope="module")
def with_blocks() -> Sequential:
    networks = [*variants(), *(Network((first(c), *block(c), linear(c * 196, 10)), 10) for c in (1, 8, 16, 32))]
    return Sequential(networks, np.array([total(n) for n in networks]))


def test_a_block_is_estimated_as_a_whole_and_its_layers_share_its_cost(with_blocks):
    network = Network((first(12), *block(12), *block(12), linear(12 * 196, 10)), 10)
    assert [len(unit.layers) for unit in with_blocks.units(network)] == [1, 2, 2, 1]
    answer = with_blocks.answer(network)
    assert answer.seconds == pytest.approx(total(network), rel=0.03)
    counts = [network.distinct[layer] for layer in answer.layers]
    assert float(np.dot(counts, answer.layer_seconds)) == pytest.approx(answer.seconds)


def test_a_block_with_another_inner_width_is_cut_into_its_layers(with_blocks):
    network = Network((first(12), *block(12, inner=30), linear(12 * 196, 10)), 10)
    assert [len(unit.layers) for unit in with_blocks.units(network)] == [1, 1, 1, 1]
    assert with_blocks.answer(network).seconds == pytest.approx(total(network), rel=0.05)


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_recovers_smooth_costs(kernel):
    networks = variants()
    model = Sequential(networks, np.array([total(n) for n in networks]), kernel)
    network = Network((first(12), conv(12, 40), linear(40 * 196, 10)), 10)
    assert model.answer(network).seconds == pytest.approx(total(network), rel=0.05)


def test_a_kernel_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(UsageError, match="rational_quadratic"):
        Sequential(variants()[:1], np.ones(1), "cubic")


def test_nothing_measured_is_no_error():
    assert Sequential([], np.zeros(0)).answer(variants()[0]).seconds > 0
