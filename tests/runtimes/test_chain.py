"""A described network is trained as described: shapes as planned, every parameter moved, no gradient too many."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ampere.core import Layer, Network, TrailingOp
from ampere.core.kinds.kind import product
from ampere.core.wiring import as_built, wire
from ampere.runtimes.torch_network import Chain, build_chain
from ampere.runtimes.torch_runtime import training
from ampere.tracing.trace import trace

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


IMAGE = 4 * 8 * 16 * 16
DESCRIBED = [
    *[("elementwise", 1, 1), ("elementwise", 2, 1), ("transcendental", 1, 1), ("dropout", 1, 1), ("pool", 1, 0.5)],
    *[("pool", 1, 2), ("pool", 1, 4), ("reduce", 1, 1), ("reduce", 1, 1 / 16), ("reduce", 1, 1 / 256)],
    *[("copy", 1, 1), ("copy", 2, 2), ("copy", 1, 4), ("copy", 1, 1 / 16), ("enlarge", 1, 4), ("other", 1, 1)],
    *[("elementwise", 900, 900), ("pool", 7, 0.3), ("enlarge", 1, 0.5)],  # what does not fit an image
]


@pytest.mark.parametrize("described", DESCRIBED)
def test_what_is_built_is_described_as_a_trace_of_it_would(described) -> None:
    """Else a profile would learn the price of an operation from another, or from one on other sizes."""
    op, read, written = described
    config = {"batch": 4, "bias": True, "dilation": (1, 1), "groups": 1, "kernel": (3, 3), "padding": (1, 1)}
    trailing = (TrailingOp(op, read * IMAGE, written * IMAGE), TrailingOp("elementwise", IMAGE, IMAGE))
    layer = Layer("conv", {**config, "size_in": (16, 16), "stride": (1, 1)}, 8, 8, trailing, "conv")
    traced = trace(_Built(layer), torch.randn(4, 8, 16, 16)).layers[-1].trailing
    built = as_built((layer,), 4)[0].trailing
    for said, seen in zip(built, traced, strict=False):  # the trace ends in a loss
        assert said.to_json()[:4] == seen.to_json()[:4]
        assert said.weight == pytest.approx(seen.weight, rel=0.3)
    assert len(traced) == len(built) + 2


class _Built(torch.nn.Module):
    """What a worker builds, reading what it is given."""

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        self.chain = build_chain(Network((layer,), 4), torch.float32)
        self.first = next(iter(self.chain.fresh))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.chain.fresh[self.first] = x
        return self.chain.forward()[0]
