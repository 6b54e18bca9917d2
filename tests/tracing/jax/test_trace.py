"""A flax model and the same model in PyTorch are the same network."""

import pytest

pytest.importorskip("flax", reason="JAX is not installed: pip install 'ampere-energy[jax]'")

import jax
import jax.numpy as jnp
import torch
from flax import nnx
from tests.tracing.jax.zoo import PAIRS, Cnn5, Lenet5, rngs
from torch import nn

from ampere.core import Network, work
from ampere.core.errors import ModelError
from ampere.tracing.jax.trace import trace
from ampere.tracing.trace import trace as trace_torch


@pytest.fixture(params=sorted(PAIRS), name="pair", scope="module")
def a_pair(request):
    (flax_model, flax_input), (torch_model, torch_input) = PAIRS[request.param]()
    return trace(flax_model, (flax_input,)), trace_torch(torch_model, (torch_input,))


def test_the_layers_are_those_of_the_same_model_in_torch(pair):
    ours, theirs = ([(x.kind, x.channels_in, x.channels_out) for x in net.layers] for net in pair)
    assert ours == theirs


def test_parameters_are_the_same_layer_by_layer(pair):
    ours, theirs = ([(work(x).parameters, work(x).parameter_tensors) for x in net.layers] for net in pair)
    assert ours == theirs


def test_flops_of_forward_and_backward_are_the_same(pair):
    ours, theirs = (sum(work(layer).flops for layer in net.layers) for net in pair)
    assert ours == pytest.approx(theirs, rel=0.01)
    for mine, its in zip(pair[0].layers, pair[1].layers, strict=True):
        assert work(mine).flops == pytest.approx(work(its).flops, rel=0.01)


def test_sizes_and_gradients_are_the_same(pair):
    for mine, its in zip(pair[0].layers, pair[1].layers, strict=True):
        assert (mine.trainable, mine.input_grad) == (its.trainable, its.input_grad)
        if mine.kind.startswith("conv"):
            assert mine.config == its.config


def test_it_says_nothing_where_all_is_known_and_can_be_stored(pair):
    assert pair[0].notes == ()
    assert Network.from_json(pair[0].to_json()) == pair[0]


def test_layers_are_named_by_their_modules():
    network = trace(Cnn5([4, 4, 4, 4], rngs()), (jnp.zeros((2, 28, 28, 1)),))
    assert [layer.name for layer in network.layers] == [*(f"convs.{i}" for i in range(4)), "head"]


def test_the_model_is_left_as_it_was():
    model = Lenet5(rngs())
    before, call = jax.tree_util.tree_leaves(nnx.state(model)), Lenet5.__call__
    trace(model, (jnp.zeros((2, 28, 28, 1)),))
    assert Lenet5.__call__ is call
    assert all((a == b).all() for a, b in zip(before, jax.tree_util.tree_leaves(nnx.state(model)), strict=True))


class Named(nnx.Module):
    """All that it calls, it calls by the names of their arguments."""

    def __init__(self):
        self.norm, self.rnn = nnx.LayerNorm(6, rngs=rngs()), nnx.RNN(nnx.GRUCell(6, 4, rngs=rngs()), rngs=rngs())

    def __call__(self, x):
        return self.rnn(inputs=self.norm(x=x))


def test_modules_may_be_called_by_keyword():
    network = trace(Named(), (jnp.zeros((2, 5, 6)),))
    assert [(layer.name, layer.kind) for layer in network.layers] == [("norm", "norm_layer"), ("rnn", "gru")]


class Looping(nnx.Module):
    """A recurrent layer by hand."""

    def __init__(self, rngs):
        self.gate = nnx.Linear(6, 6, rngs=rngs)
        self.head = nnx.Linear(6, 3, rngs=rngs)

    def __call__(self, x):
        kernel = self.gate.kernel[...]
        state, _ = jax.lax.scan(lambda h, row: (jnp.tanh(h @ kernel + row), None), x[:, 0], jnp.swapaxes(x, 0, 1))
        return self.head(state)


def test_what_no_kind_knows_is_a_named_layer_with_its_work():
    """Seven steps: forward, the weights, and the state that each reads but the first."""
    network = trace(Looping(rngs()), (jnp.zeros((2, 7, 6)),))
    loop = next(layer for layer in network.layers if layer.kind == "opaque")
    assert loop.name == "scan"
    assert work(loop).parameters == 36
    assert 7 * 2 * 2 * 6 * 6 * 2 < work(loop).flops <= 7 * 2 * 2 * 6 * 6 * 3
    assert any("gate.bias" in note for note in network.notes)


@pytest.mark.parametrize(
    ("cell", "kind", "torch_kind"),
    [(nnx.LSTMCell, "lstm", nn.LSTM), (nnx.GRUCell, "gru", nn.GRU), (nnx.SimpleCell, "rnn", nn.RNN)],
)
def test_recurrent_layers_do_the_work_of_those_of_torch(cell, kind, torch_kind):
    ours = trace(nnx.RNN(cell(4, 6, rngs=rngs()), rngs=rngs()), (jnp.zeros((2, 7, 4)),))
    theirs = trace_torch(torch_kind(4, 6, batch_first=True), (torch.zeros(2, 7, 4),))
    (mine,), its = ours.layers, theirs.layers[0]
    assert ours.notes == ()
    assert (mine.kind, mine.channels_in, mine.channels_out) == (kind, 4, 6)
    assert work(mine).flops == pytest.approx(work(its).flops, rel=0.01)


def test_a_transposed_convolution_has_the_sizes_of_torch():
    ours = trace(nnx.ConvTranspose(4, 6, (3, 3), strides=2, padding="VALID", rngs=rngs()), (jnp.zeros((2, 5, 5, 4)),))
    theirs = trace_torch(nn.ConvTranspose2d(4, 6, 3, stride=2), (torch.zeros(2, 4, 5, 5),))
    assert ours.layers[0].config == theirs.layers[0].config
    assert work(ours.layers[0]).flops == pytest.approx(work(theirs.layers[0]).flops, rel=0.01)


class Odd(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(8, 8, rngs=rngs)

    def __call__(self, x):
        y = self.first(x)
        return jnp.linalg.cholesky(y @ y.T + 10 * jnp.eye(len(y))).sum(axis=1, keepdims=True)


def test_an_operation_of_no_class_is_reported():
    network = trace(Odd(rngs()), (jnp.zeros((4, 8)),))
    assert any("cholesky" in note for note in network.notes)
    assert any(layer.kind == "opaque" and "cholesky" in layer.name for layer in network.layers)


class Twice(nnx.Module):
    def __init__(self, rngs):
        self.same = nnx.Linear(8, 8, rngs=rngs)

    def __call__(self, x):
        return self.same(nnx.relu(self.same(x)))


def test_a_shared_module_runs_twice_and_is_updated_once():
    network = trace(Twice(rngs()), (jnp.zeros((4, 8)),))
    assert [layer.kind for layer in network.layers] == ["linear", "linear"]
    assert [work(layer).parameters for layer in network.layers] == [72, 0]


class Strided(nnx.Module):
    def __init__(self, rngs):
        self.down = nnx.Conv(3, 8, (3, 3), strides=2, use_bias=False, rngs=rngs)
        self.norm = nnx.BatchNorm(8, rngs=rngs)
        self.deep = nnx.Conv(8, 8, (3, 3), feature_group_count=8, rngs=rngs)
        self.group = nnx.GroupNorm(8, 2, rngs=rngs)

    def __call__(self, x):
        return self.group(self.deep(nnx.relu(self.norm(self.down(x)))))


def test_norms_strides_and_groups_have_their_kinds():
    network = trace(Strided(rngs()), (jnp.zeros((2, 16, 16, 3)),))
    assert [layer.kind for layer in network.layers] == ["conv", "norm_batch", "conv_grouped", "norm_layer"]
    assert [work(layer).parameters for layer in network.layers] == [216, 16, 80, 16]
    assert network.layers[0].config["stride"] == (2, 2)


class Flagged(nnx.Module):
    """Called with a flag, a constant that nobody trains, and a product of its own."""

    def __init__(self, rngs):
        self.kernel = nnx.Param(jnp.ones((8, 4)))

    def __call__(self, x, *, wide):
        mask = jnp.triu(jnp.ones((8, 4))) if wide else 1.0
        return x @ (self.kernel[...] * mask)


@pytest.mark.parametrize("wide", [True, False])
def test_flags_stay_as_they_are_and_constants_are_no_layers(wide):
    network = trace(Flagged(rngs()), {"x": jnp.zeros((5, 8)), "wide": wide})
    layers = [
        (layer.kind, layer.channels_in, layer.channels_out) for layer in network.layers if layer.kind != "nonparametric"
    ]
    assert layers == [("linear", 8, 4)]
    assert (network.batch, network.notes) == (5, ())


class Untrainable(nnx.Module):
    def __call__(self, x):
        return x


class Broken(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(8, 8, rngs=rngs)

    def __call__(self, x):
        return self.first(x[:, :3])


@pytest.mark.parametrize(("model", "says"), [(Untrainable(), "no nnx.Param"), (Broken(rngs()), "Broken")])
def test_models_that_cannot_be_traced_are_refused_in_one_line(model, says):
    with pytest.raises(ModelError, match=says) as refused:
        trace(model, (jnp.zeros((4, 8)),))
    assert "\n" not in str(refused.value)
