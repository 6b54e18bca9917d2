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


@pytest.mark.parametrize("trained", [True, False])
@pytest.mark.parametrize("described", DESCRIBED)
def test_what_is_built_is_described_as_a_trace_of_it_would(described, trained: bool) -> None:
    """Else a profile would learn the price of an operation from another, or from one on other sizes.

    The same holds behind layers that are not trained, where nothing has a backward pass.
    """
    op, read, written = described
    config = {"batch": 4, "bias": True, "dilation": (1, 1), "groups": 1, "kernel": (3, 3), "padding": (1, 1)}
    operation = TrailingOp(op, read * IMAGE, written * IMAGE, trained)
    trailing = (operation, TrailingOp("elementwise", IMAGE, IMAGE, trained))
    config = {**config, "size_in": (16, 16), "stride": (1, 1)}
    layer = Layer("conv", config, 8, 8, trailing, "conv", trained, input_grad=False)
    last = Layer("conv", {**config, "size_in": (1, 1), "padding": (0, 0), "kernel": (1, 1)}, 1, 1, (), "last")
    built = as_built(Network((layer,) if trained else (layer, last), 4)).layers[0].trailing
    network = trace(_Built(layer, trained), torch.randn(4, 8, 16, 16))
    traced = next(layer for layer in network.layers if layer.kind == "conv").trailing
    assert len(traced) == len(built)
    for said, seen in zip(built, traced, strict=True):
        assert said.to_json()[:4] == seen.to_json()[:4]
        assert said.weight == pytest.approx(seen.weight, rel=0.3)


def test_a_loss_of_several_parts_is_wired() -> None:
    """The mean of a mean, as where two losses are added up."""
    ops = (("reduce", 32, 1), ("reduce", 1, 1), ("elementwise", 2, 1), ("elementwise", 1, 1))
    layer = Layer("linear", {"lead": (4,), "bias": True}, 8, 8, tuple(TrailingOp(op, a, b) for op, a, b in ops))
    build_chain(Network((layer,), 4), torch.float32).loss().backward()
    assert [op.op for op in as_built(Network((layer,), 4)).layers[0].trailing][:2] == ["reduce", "reduce"]


def test_a_loss_after_pooling_is_of_the_values_that_are_left() -> None:
    """Pooling also writes where it found each value."""
    config = {"batch": 4, "size": (16, 16)}
    pooled = Layer("norm_batch", config, 8, 8, (TrailingOp("pool", IMAGE, IMAGE / 2),))
    square, mean = as_built(Network((pooled,), 4)).layers[0].trailing[1:]
    assert (square.values_in, mean.values_in) == (IMAGE / 4, IMAGE / 4)


class _Built(torch.nn.Module):
    """What a worker builds, reading what it is given."""

    def __init__(self, layer: Layer, trained: bool) -> None:
        super().__init__()
        self.last = None if trained else torch.nn.Linear(1, 1)
        self.chain = build_chain(Network((layer,), 4), torch.float32)
        self.first = next(iter(self.chain.fresh))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.chain.fresh[self.first] = x
        made = self.chain.forward()[0]
        return made if self.last is None else self.last(made.reshape(-1, 1))
