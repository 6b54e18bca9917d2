"""Which tensors layers read: found by size, never by accident with the wrong gradient."""

import importlib

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ampere.core import Layer, Network, TrailingOp
from ampere.core.kinds.kind import product
from ampere.core.trailing_ops import plan_trailing, with_dropout, without_loss
from ampere.core.wiring import Read, wire
from ampere.models import SPACES
from ampere.tracing.trace import trace


def linear(channels_in, channels_out, lead=(2,), trailing=(), **more):
    return Layer("linear", {"lead": lead, "bias": True}, channels_in, channels_out, trailing, **more)


def wired(*layers):
    return wire(Network(layers, 2))


def test_layers_that_fit_are_a_chain():
    wiring = wired(linear(8, 4, input_grad=False), linear(4, 6), linear(6, 3))
    assert len(wiring.fresh) == 1
    assert not wiring.fresh[0].operand.grad
    assert wiring.dangling == ()


def test_a_linear_layer_after_another_shape_reads_it_flattened():
    wiring = wired(linear(8, 4, lead=(2, 5), input_grad=False), linear(20, 3))
    assert len(wiring.fresh) == 1
    assert wiring.nodes[1].reads[0] == Read(wiring.nodes[0].writes, (2, 20))


def test_what_fits_nothing_reads_a_fresh_tensor_and_leaves_the_other_dangling():
    wiring = wired(linear(8, 4, input_grad=False), linear(7, 3))
    assert [fresh.operand.grad for fresh in wiring.fresh] == [False, True]
    assert wiring.dangling == (wiring.nodes[0].writes,)


def test_an_earlier_tensor_of_the_right_shape_is_read_again():
    wiring = wired(linear(8, 4, input_grad=False), linear(4, 6), linear(4, 3))
    assert wiring.nodes[2].reads[0].value == wiring.nodes[0].writes


def test_gradients_do_not_flow_where_the_description_has_none():
    wiring = wired(linear(8, 4, input_grad=False), linear(4, 3, input_grad=False))
    assert [fresh.operand.grad for fresh in wiring.fresh] == [False, False]


def test_attention_reads_three_different_tensors():
    width = linear(8, 8, lead=(2, 4))
    attention = Layer("attention", {"batch": 2, "heads": 2, "queries": 4, "keys": 4}, 4, 4)
    wiring = wired(linear(8, 8, lead=(2, 4), input_grad=False), width, width, attention)
    assert len({read.value for read in wiring.nodes[-1].reads}) == 3
    assert len(wiring.fresh) == 1


def test_attention_after_one_layer_for_all_three_reads_its_parts():
    attention = Layer("attention", {"batch": 2, "heads": 2, "queries": 4, "keys": 4}, 4, 4)
    wiring = wired(linear(8, 24, lead=(8,), input_grad=False), attention)
    assert [(read.parts, read.part) for read in wiring.nodes[-1].reads] == [(3, 0), (3, 1), (3, 2)]
    assert len(wiring.fresh) == 1


def test_a_linear_layer_after_a_sequence_reads_its_last_entry():
    wiring = wired(linear(8, 6, lead=(2, 5), input_grad=False), linear(6, 3))
    assert wiring.nodes[-1].reads[0].last_of == (1,)


def test_a_sum_reads_what_nothing_has_read_yet():
    add = (TrailingOp("elementwise", 24, 12),)
    stem, main, side = linear(8, 4, input_grad=False), linear(4, 6), linear(4, 6, trailing=add)
    wiring = wired(stem, main, linear(6, 4), linear(4, 6), side)
    assert wiring.nodes[-1].reads[1].value == wiring.nodes[3].writes
    assert wiring.dangling == ()


def test_values_are_let_go_after_their_last_reader():
    wiring = wired(linear(8, 4, input_grad=False), linear(4, 6), linear(4, 3))
    assert wiring.frees == ((), (), (wiring.nodes[0].writes,))


def test_dropout_is_recognised_by_its_three_operations():
    draw, scale = TrailingOp("dropout", 6, 6, backward=False), TrailingOp("elementwise", 6, 6, backward=False)
    relu, multiply = TrailingOp("elementwise", 6, 6), TrailingOp("elementwise", 12, 6)
    tail = with_dropout((relu, draw, scale, multiply, multiply))
    assert [op.op for op in tail] == ["elementwise", "dropout", "elementwise"]
    assert plan_trailing(tail[1], (2, 3)).action == "dropout"
    assert with_dropout((draw, multiply)) == (draw, multiply)
    assert plan_trailing(draw, (2, 3)).action == "draw"


def test_what_has_no_backward_is_done_aside():
    mask = TrailingOp("elementwise", 6, 6, backward=False)
    assert plan_trailing(mask, (2, 3)).action == "aside"
    assert plan_trailing(mask, (2, 3), grad=False).action == "relu"


def test_the_next_layer_decides_what_a_pool_leaves():
    pool = TrailingOp("pool", 96, 48)
    assert plan_trailing(pool, (2, 4, 12), wanted=48).shape == (2, 4, 6)
    assert plan_trailing(pool, (2, 4, 12), wanted=24).shape == (2, 4, 3)


def test_the_loss_in_the_last_trailing_operations_is_left_to_the_runtime():
    relu, softmax, nll = TrailingOp("elementwise", 6, 6), TrailingOp("reduce", 6, 6), TrailingOp("reduce", 6, 1)
    square, mean = TrailingOp("elementwise", 6, 6), TrailingOp("reduce", 6, 1)
    assert without_loss((relu, softmax, nll)) == (relu,)
    assert without_loss((relu, square, mean)) == (relu,)
    assert without_loss((relu, softmax)) == (relu, softmax)


@pytest.mark.parametrize("name", sorted(SPACES))
def test_the_networks_of_our_spaces_have_no_loose_ends(name):
    space = SPACES[name]
    module, _, function = space.factory.rpartition(":")
    with torch.device("meta"):
        model, inputs = getattr(importlib.import_module(module), function)(**space.default)
    wiring = wire(trace(model, inputs))
    assert len(wiring.fresh) == 1
    assert wiring.dangling == ()


def test_trailing_operations_of_known_sizes():
    image = (2, 8, 12, 12)
    values = product(image)
    cases = {
        ("pool", values, values / 4): ("max_pool", (2, 8, 6, 6)),
        ("pool", values, values / 2): ("max_pool", (2, 8, 6, 6)),
        ("pool", values, 16): ("max_pool", (2, 8, 1, 1)),
        ("pool", values, 2 * 8 * 25): ("adaptive_pool", (2, 8, 5, 5)),
        ("pool", values, values): ("max_pool_same", image),
        ("pool", values, values * 4): ("repeat", (2, 8, 24, 24)),
        ("enlarge", values, values * 4): ("enlarge", (2, 8, 24, 24)),
        ("enlarge", values, values * 3): ("relu", image),
        ("elementwise", values, values): ("relu", image),
        ("elementwise", 2 * values, values): ("add", image),
        ("transcendental", values, values): ("gelu", image),
        ("reduce", values, values): ("softmax", image),
        ("reduce", values, 16): ("mean", (2, 8)),
        ("copy", values, values): ("copy", image),
        ("copy", 2 * values, 2 * values): ("concat", (2, 16, 12, 12)),
        ("copy", values, values / 12): ("last", (2, 8, 12)),
        ("other", values, 5): ("relu", image),
    }
    for (op, read, written), (action, shape) in cases.items():
        plan = plan_trailing(TrailingOp(op, read, written), image)
        assert (plan.action, plan.shape) == (action, shape), op


@given(
    st.sampled_from(["elementwise", "pool", "reduce", "copy", "other", "enlarge", "transcendental"]),
    st.floats(0, 1e6),
    st.floats(0, 1e6),
    st.lists(st.integers(1, 9), min_size=1, max_size=5).map(tuple),
)
def test_any_trailing_operation_has_a_plan(op, read, written, shape):
    plan = plan_trailing(TrailingOp(op, read, written), shape)
    assert all(n >= 1 for n in plan.shape)
