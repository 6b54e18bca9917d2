"""A described network is trained as described: shapes as planned, every parameter moved, no gradient too many."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ampere.core import Layer, Network, TrailingOp
from ampere.core.kinds.kind import product
from ampere.core.wiring import wire
from ampere.runtimes.torch_network import Chain, build_chain
from ampere.runtimes.torch_runtime import training

OPS = ["elementwise", "pool", "reduce", "copy", "other", "enlarge", "transcendental"]


def test_every_layer_moves(examples):
    layers = tuple(layer for group in examples.values() for layer in group)
    chain = build_chain(Network(layers, 3), torch.float32)
    before = [p.clone() for p in chain.parameters()]
    step = training(chain.trained, chain.loss, "adam").step
    step(), step()
    still = [n for (n, p), b in zip(chain.named_parameters(), before, strict=True) if torch.equal(p, b)]
    assert still == []


def test_the_input_has_a_gradient_only_where_described():
    for wanted in (False, True):
        layer = Layer("linear", {"lead": (3,), "bias": True}, 8, 4, input_grad=wanted)
        chain = build_chain(Network((layer,), 3), torch.float32)
        chain.loss().backward()
        assert [(t.grad is not None) for t in chain.fresh.values()] == [wanted]


@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 5), (3, 4, 6, 6), (2, 3, 4, 4, 4)])
@settings(max_examples=40, deadline=None)
@given(
    ops=st.lists(
        st.tuples(st.sampled_from(OPS), st.sampled_from([0.5, 1, 2, 4]), st.sampled_from([0.1, 0.25, 0.5, 1, 2, 4]))
    )
)
def test_trailing_operations_give_the_shapes_that_were_planned(shape, ops):
    values = product(shape)
    tail = tuple(TrailingOp(op, values * a, values * b) for op, a, b in ops[:3])
    config = {"batch": shape[0], "size": shape[2:]}
    layer = Layer("norm_batch", config, shape[1], shape[1], tail)
    wiring = wire(Network((layer, layer), shape[0]))
    assert shapes_made(Chain(wiring, torch.float32)) == [node.shape for node in wiring.nodes]
    Chain(wiring, torch.float32).loss().backward()


def shapes_made(chain):
    values = dict(chain.fresh)
    for action, reads, writes, _ in chain.calls:
        values[writes] = action(*[values[i] if view is None else view(values[i]) for i, view in reads])
    return [tuple(values[call.writes].shape) for call in chain.calls]
