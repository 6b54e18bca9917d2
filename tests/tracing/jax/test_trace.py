"""A flax model and the same model in PyTorch are the same network."""

import importlib

import pytest
import torch
from torch import nn

from ampere.core import Network, work
from ampere.core.errors import ModelError
from ampere.runtimes import description_of, installed
from ampere.tracing.trace import trace as trace_torch

pytestmark = pytest.mark.skipif("jax" not in installed(), reason=description_of("jax").install)


@pytest.fixture(scope="module")
def zoo():
    """Imported here, so that not every process that collects tests imports JAX."""
    return importlib.import_module("tests.tracing.jax.zoo")


def trace(model, inputs):
    from ampere.tracing.jax.trace import trace

    return trace(model, inputs)


@pytest.fixture(params=["cnn5", "lenet5", "mlp", "transformer"], name="pair", scope="module")
def a_pair(request, zoo):
    (flax_model, flax_input), (torch_model, torch_input) = zoo.PAIRS[request.param]()
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


def test_layers_are_named_by_their_modules(zoo):
    network = trace(zoo.Cnn5([4, 4, 4, 4], zoo.rngs()), (zoo.jnp.zeros((2, 28, 28, 1)),))
    assert [layer.name for layer in network.layers] == [*(f"convs.{i}" for i in range(4)), "head"]


def test_the_model_is_left_as_it_was(zoo):
    model = zoo.Lenet5(zoo.rngs())
    before, call = zoo.jax.tree_util.tree_leaves(zoo.nnx.state(model)), zoo.Lenet5.__call__
    trace(model, (zoo.jnp.zeros((2, 28, 28, 1)),))
    assert zoo.Lenet5.__call__ is call
    assert all((a == b).all() for a, b in zip(before, zoo.jax.tree_util.tree_leaves(zoo.nnx.state(model)), strict=True))


def test_modules_may_be_called_by_keyword(zoo):
    network = trace(zoo.Named(), (zoo.jnp.zeros((2, 5, 6)),))
    assert [(layer.name, layer.kind) for layer in network.layers] == [("norm", "norm_layer"), ("rnn", "gru")]


def test_what_no_kind_knows_is_a_named_layer_with_its_work(zoo):
    """Seven steps: forward, the weights, and the state that each reads but the first."""
    network = trace(zoo.Looping(zoo.rngs()), (zoo.jnp.zeros((2, 7, 6)),))
    loop = next(layer for layer in network.layers if layer.kind == "opaque")
    assert loop.name == "scan"
    assert work(loop).parameters == 36
    assert 7 * 2 * 2 * 6 * 6 * 2 < work(loop).flops <= 7 * 2 * 2 * 6 * 6 * 3
    assert any("gate.bias" in note for note in network.notes)


@pytest.mark.parametrize(
    ("cell", "kind", "torch_kind"),
    [("LSTMCell", "lstm", nn.LSTM), ("GRUCell", "gru", nn.GRU), ("SimpleCell", "rnn", nn.RNN)],
)
def test_recurrent_layers_do_the_work_of_those_of_torch(zoo, cell, kind, torch_kind):
    layer = zoo.nnx.RNN(getattr(zoo.nnx, cell)(4, 6, rngs=zoo.rngs()), rngs=zoo.rngs())
    ours = trace(layer, (zoo.jnp.zeros((2, 7, 4)),))
    theirs = trace_torch(torch_kind(4, 6, batch_first=True), (torch.zeros(2, 7, 4),))
    (mine,), its = ours.layers, theirs.layers[0]
    assert ours.notes == ()
    assert (mine.kind, mine.channels_in, mine.channels_out) == (kind, 4, 6)
    assert work(mine).flops == pytest.approx(work(its).flops, rel=0.01)


def test_a_transposed_convolution_has_the_sizes_of_torch(zoo):
    layer = zoo.nnx.ConvTranspose(4, 6, (3, 3), strides=2, padding="VALID", rngs=zoo.rngs())
    ours = trace(layer, (zoo.jnp.zeros((2, 5, 5, 4)),))
    theirs = trace_torch(nn.ConvTranspose2d(4, 6, 3, stride=2), (torch.zeros(2, 4, 5, 5),))
    assert ours.layers[0].config == theirs.layers[0].config
    assert work(ours.layers[0]).flops == pytest.approx(work(theirs.layers[0]).flops, rel=0.01)


def test_an_operation_of_no_class_is_reported(zoo):
    network = trace(zoo.Odd(zoo.rngs()), (zoo.jnp.zeros((4, 8)),))
    assert any("cholesky" in note for note in network.notes)
    assert any(layer.kind == "opaque" and "cholesky" in layer.name for layer in network.layers)


def test_a_shared_module_runs_twice_and_is_updated_once(zoo):
    network = trace(zoo.Twice(zoo.rngs()), (zoo.jnp.zeros((4, 8)),))
    assert [layer.kind for layer in network.layers] == ["linear", "linear"]
    assert [work(layer).parameters for layer in network.layers] == [72, 0]


def test_norms_strides_and_groups_have_their_kinds(zoo):
    network = trace(zoo.Strided(zoo.rngs()), (zoo.jnp.zeros((2, 16, 16, 3)),))
    assert [layer.kind for layer in network.layers] == ["conv", "norm_batch", "conv_grouped", "norm_layer"]
    assert [work(layer).parameters for layer in network.layers] == [216, 16, 80, 16]
    assert network.layers[0].config["stride"] == (2, 2)


@pytest.mark.parametrize("wide", [True, False])
def test_flags_stay_as_they_are_and_constants_are_no_layers(zoo, wide):
    network = trace(zoo.Flagged(zoo.rngs()), {"x": zoo.jnp.zeros((5, 8)), "wide": wide})
    layers = [
        (layer.kind, layer.channels_in, layer.channels_out) for layer in network.layers if layer.kind != "nonparametric"
    ]
    assert layers == [("linear", 8, 4)]
    assert (network.batch, network.notes) == (5, ())


@pytest.mark.parametrize(("model", "says"), [("Untrainable", "no nnx.Param"), ("Broken", "Broken")])
def test_models_that_cannot_be_traced_are_refused_in_one_line(zoo, model, says):
    with pytest.raises(ModelError, match=says) as refused:
        trace(getattr(zoo, model)(zoo.rngs()), (zoo.jnp.zeros((4, 8)),))
    assert "\n" not in str(refused.value)
