"""Which operations make which layers."""

import pytest
import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from ampere.core import Layer, Network, TrailingOp, work
from ampere.tracing.trace import trace

from .zoo import ZOO
from .zoo_edges import Line, linear


def layers(name: str) -> list[Layer]:
    return list(trace(*ZOO[name]()).layers)


def test_layers_are_in_the_order_in_which_they_run() -> None:
    model = Line(lambda m, x: m.a(m.b(x)), a=nn.Linear(5, 6), b=nn.Linear(4, 5))
    assert [layer.name for layer in trace(model, torch.empty(2, 4)).layers] == ["b", "a"]


def test_names_are_module_paths() -> None:
    model = nn.Sequential()
    model.add_module("features", nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten()))
    model.add_module("head", nn.Linear(4 * 36, 2))
    assert [layer.name for layer in trace(model, torch.empty(2, 1, 8, 8)).layers] == ["features.0", "head"]


def test_parameters_of_no_module_give_their_own_name() -> None:
    assert [layer.name for layer in layers("functional")][:2] == ["w1", "w2"]


def test_what_follows_a_layer_is_trailing() -> None:
    first = layers("cnn5")[0]
    assert first.trailing == (
        TrailingOp("elementwise", 4 * 8 * 784, 4 * 8 * 784),
        TrailingOp("pool", 4 * 8 * 784, 2 * 4 * 8 * 196),  # and where each was found
    )


def test_enlarging_between_values_is_no_pooling() -> None:
    def first(mode: str) -> TrailingOp:
        model = nn.Sequential(nn.Conv2d(1, 4, 1), nn.Upsample(scale_factor=2, mode=mode), nn.Conv2d(4, 1, 1))
        return trace(model, torch.empty(2, 1, 8, 8)).layers[0].trailing[0]

    assert first("bilinear") == TrailingOp("enlarge", 2 * 4 * 64, 2 * 4 * 256)
    assert first("nearest") == TrailingOp("pool", 2 * 4 * 64, 2 * 4 * 256, weight=0.62)


@pytest.mark.parametrize("activation", [nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.ELU, nn.Softplus, nn.Mish])
def test_a_transcendental_activation_is_none_that_a_comparison_computes(activation) -> None:
    def first(module: nn.Module) -> TrailingOp:
        return trace(nn.Sequential(nn.Linear(3, 5), module, nn.Linear(5, 2)), torch.empty(2, 3)).layers[0].trailing[0]

    assert first(activation()).to_json()[:4] == ["transcendental", 10, 10, True]
    assert {first(cheap()).op for cheap in (nn.ReLU, nn.LeakyReLU, nn.Hardswish, nn.ReLU6)} == {"elementwise"}


def test_loss_is_in_the_last_trailing_operations() -> None:
    assert [op.op for op in layers("cnn5")[-1].trailing] == ["reduce", "reduce"]


def test_views_are_free() -> None:
    plain = trace(*linear(lambda m, x: m.linear(x))).layers
    viewed = trace(*linear(lambda m, x: m.linear(x).view(-1, 2, 2).transpose(1, 2).transpose(1, 2).flatten(1))).layers
    assert viewed == plain


def test_the_gradient_of_a_part_is_as_large_as_the_whole() -> None:
    """A loop over positions: each gradient is filled with zeros and added to those before it."""

    def parts(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        whole = m.linear(x)
        return torch.stack([torch.tanh(whole[place]) for place in range(count)])

    count, whole = 64, 64 * 4  # positions and features
    views, layer = trace(*linear(parts, count, 4)).layers
    assert (views.kind, views.name, layer.name) == ("nonparametric", "views", "linear")
    moved = sum(op.values_in + op.values_out for op in views.trailing)
    assert (count - 1) * 4 * whole <= moved <= count * 6 * whole
    assert [layer.name for layer in trace(*linear(lambda m, x: m.linear(x)[0])).layers] == ["linear"]  # one is little


def test_what_precedes_the_first_layer_is_glue() -> None:
    first = trace(*linear(lambda m, x: m.linear(torch.tanh(x)))).layers[0]
    assert (first.kind, [op.op for op in first.trailing], first.backward) == (
        "nonparametric",
        ["transcendental"],
        False,
    )


def test_kinds_of_the_families() -> None:
    kinds = [layer.kind for layer in layers("resnet18")]
    assert (kinds.count("conv"), kinds.count("norm_batch"), kinds.count("linear")) == (20, 20, 1)
    assert [layer.kind for layer in layers("gru_text")] == ["embedding", "gru", "linear"]
    assert [layer.kind for layer in layers("depthwise")].count("conv_grouped") == 3
    assert [layer.kind for layer in layers("unet")] == ["conv", "conv", "conv_transposed", "conv"]


def test_an_encoder_layer_is_four_linear_layers_two_norms_and_one_attention() -> None:
    kinds = [layer.kind for layer in layers("encoder")]
    assert (kinds.count("linear"), kinds.count("norm_layer"), kinds.count("attention")) == (8, 4, 2)
    assert "matmul" not in kinds


def test_parametric_layers_of_foreign_models() -> None:
    kinds = [layer.kind for layer in layers("hf_llama")]
    assert (kinds.count("linear"), kinds.count("attention"), kinds.count("scale")) == (15, 2, 5)
    kinds = [layer.kind for layer in layers("hf_vit")]
    assert (kinds.count("conv"), kinds.count("linear"), kinds.count("scale")) == (1, 13, 2)


def test_first_layer_passes_no_gradient_on() -> None:
    first, second = layers("lenet5")[:2]
    assert (first.trainable, first.input_grad) == (True, False)
    assert (second.trainable, second.input_grad) == (True, True)


def test_frozen_backbone_has_no_backward() -> None:
    *backbone, head, _ = layers("frozen")
    assert not any(layer.backward or any(op.backward for op in layer.trailing) for layer in backbone)
    assert work(backbone[0]).flops == 2 * 4 * 36 * 9 * 3 * 8
    assert (head.trainable, head.input_grad) == (True, False)


def test_frozen_layer_between_trained_ones_passes_the_gradient_on() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4).requires_grad_(False), nn.Linear(4, 2))
    middle = trace(model, torch.empty(3, 4)).layers[1]
    assert (middle.trainable, middle.input_grad) == (False, True)


def test_no_gradient_through_detach_and_no_grad() -> None:
    def line(model: Line, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            hidden = model.a(x)
        return model.linear(hidden) + model.b(hidden).detach()

    network = trace(*linear(line, a=nn.Linear(4, 4), b=nn.Linear(4, 4)))
    assert {layer.name: layer.trainable for layer in network.layers} == {"a": False, "linear": True, "b": False}
    assert "no gradient reaches a.weight and 3 more" in network.notes[0]


def test_module_called_twice_is_two_layers_and_one_set_of_parameters() -> None:
    again = [layer for layer in layers("twice") if layer.name == "again"]
    assert [work(layer).parameters for layer in again] == [72, 0]
    assert [work(layer).parameter_tensors for layer in again] == [2, 0]
    # The second use makes gradients as large as the weights, and adds them to those of the first: for weights and bias.
    first, second = map(work, again)
    assert (second.values - first.values, second.launches - first.launches) == (4 * 72, 2)


def test_tied_weights_are_updated_once() -> None:
    embedding, head = layers("hf_gpt2")[0], layers("hf_gpt2")[-1]
    assert (embedding.kind, head.kind) == ("embedding", "linear")
    assert (work(embedding).parameters, work(head).parameters) == (50 * 16, 0)


def test_attention_reports_what_changes_its_cost() -> None:
    def line(model: Line, x: torch.Tensor) -> torch.Tensor:
        heads = model.linear(x).view(2, 5, 2, 2).transpose(1, 2)
        return functional.scaled_dot_product_attention(heads, heads, heads, is_causal=True, dropout_p=0.1)

    attention = trace(*linear(line, 2, 5, 4)).layers[1]
    assert attention.config == {"batch": 2, "heads": 2, "queries": 5, "keys": 5, "causal": True, "dropout": True}


def test_product_without_a_parameter_is_no_linear_layer() -> None:
    kinds = [layer.kind for layer in layers("functional")]
    assert kinds == ["linear", "linear", "matmul", "matmul", "scale"]


def test_a_matrix_of_parameters_for_each_example_makes_no_linear_layer() -> None:
    """One product after another, each by itself: that costs several times what one product of all rows does."""
    model = Line(lambda m, x: torch.bmm(x, m.w), w=nn.Parameter(torch.randn(6, 4, 5)))
    (product,) = trace(model, torch.empty(6, 3, 4)).layers
    assert (product.kind, product.config["batch"], product.config["rows"]) == ("matmul", 6, 3)
    needed = work(product)
    assert (needed.parameters, needed.parameter_tensors) == (6 * 4 * 5, 1)
    assert needed.flops == 2 * (2 * 6 * 3 * 4 * 5)  # forward and the gradient of the parameters


def test_each_of_many_small_products_takes_its_time() -> None:
    def one_by_one(batch: int, rows: int, inner: int, last: int) -> float:
        return float(work(Layer("matmul", {"batch": batch, "rows": rows}, inner, last)).remainders)

    assert one_by_one(100, 2, 3, 2) == 3 * 100 * 12
    assert one_by_one(100, 64, 64, 64) == one_by_one(100, 16, 16, 16) < 3 * 100 * 16**3


def test_bias_added_apart_belongs_to_its_linear_layer() -> None:
    first = trace(nn.Linear(4, 6), torch.empty(3, 5, 4).transpose(0, 1)).layers[-1]
    assert (first.kind, first.config["bias"], work(first).parameters) == ("linear", True, 30)


def test_batch_is_that_of_the_first_input() -> None:
    assert trace(*ZOO["seq_to_seq"]()).batch == 2


class Recurrent(nn.Module):
    def __init__(self, batch_first: bool, row_each: bool = False) -> None:
        super().__init__()
        self.cell, self.head, self.row_each = nn.LSTM(8, 8, batch_first=batch_first), nn.Linear(8, 2), row_each

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.cell(x)[0])
        return out[:, -1] if self.row_each else out


def test_batch_is_second_where_the_length_is_first() -> None:
    x = torch.randn(5, 3, 8)
    length_first, batch_first = (trace(Recurrent(first), x) for first in (False, True))
    assert (length_first.batch, batch_first.batch) == (3, 5)
    assert length_first.notes[-1].startswith("its batch is the second dimension of its input, as cell takes it")
    assert not batch_first.notes
    assert trace(Recurrent(False, row_each=True), x).batch == 5, "a mistake that many make, but the batch is meant"


class Bags(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bag, self.head = nn.EmbeddingBag(50, 8), nn.Linear(8, 2)

    def forward(self, tokens: Tensor, begins: Tensor) -> Tensor:
        out: Tensor = self.head(self.bag(tokens, begins))
        return out


def test_batch_of_tokens_in_one_list_is_the_number_of_texts() -> None:
    assert trace(Bags(), (torch.randint(0, 50, (40,)), torch.arange(0, 40, 10))).batch == 4


@pytest.mark.skipif(not hasattr(functional, "grouped_mm"), reason="since PyTorch 2.10")
def test_experts_are_products_that_share_the_rows() -> None:
    model = Line(
        lambda m, x: functional.grouped_mm(x, m.w, offs=torch.tensor([8, 16, 33], dtype=torch.int32)),
        w=nn.Parameter(torch.randn(3, 16, 8)),
    )
    network = trace(model, torch.randn(33, 16, requires_grad=True))
    (product,) = [layer for layer in network.layers if layer.kind == "matmul"]
    assert (product.config["batch"], product.config["rows"]) == (3, 11)
    assert sum(work(layer).flops for layer in network.layers) == 3 * 2 * 33 * 16 * 8
    assert sum(work(layer).parameters for layer in network.layers) == 3 * 16 * 8


def test_weights_of_another_precision_are_named() -> None:
    doubles, usual = (trace(nn.Linear(3, 2, dtype=d), torch.empty(4, 3, dtype=d)) for d in (torch.float64, None))
    assert "its weights are float64" in doubles.notes[0]
    assert usual.notes == ()


def weights(model: nn.Module, *shape: int) -> dict[str, float]:
    found = trace(model, torch.empty(*shape)).layers[0].trailing
    return {op.op: op.weight for op in reversed(found)}  # of the first of each class


def test_the_usual_operation_of_a_class_weighs_one() -> None:
    for usual in (nn.ReLU(), nn.LeakyReLU(), nn.GELU(), nn.MaxPool2d(2), nn.Dropout2d(0.1)):
        assert weights(nn.Sequential(nn.Conv2d(3, 8, 3), usual), 2, 3, 40, 40).popitem()[1] == 1.0


def test_dropout_of_half_takes_longer_to_draw_than_that_of_a_tenth() -> None:
    tenth, half = (weights(nn.Sequential(nn.Linear(64, 64), nn.Dropout(p)), 32, 64)["dropout"] for p in (0.1, 0.5))
    assert 1.5 * tenth < half < 3 * tenth


def test_a_large_window_takes_longer_than_a_small_one() -> None:
    small, large = (
        weights(nn.Sequential(nn.Conv2d(3, 8, 3), nn.MaxPool2d(k, 2, k // 2)), 2, 3, 32, 32)["pool"] for k in (2, 5)
    )
    assert large > 1.5 * small


def test_a_softmax_across_rows_is_no_softmax_along_them() -> None:
    along, across = (weights(nn.Sequential(nn.Linear(8, 8), nn.Softmax(d)), 16, 64, 8)["reduce"] for d in (2, 1))
    long = weights(nn.Sequential(nn.Linear(8, 64), nn.Softmax(-1)), 16, 8)["reduce"]
    assert long == 1.0
    assert across > 3
    assert along > 3, "so short a row is no better"


def test_an_operation_on_what_lies_in_another_order_loses_its_vectors() -> None:
    straight = weights(Line(lambda m, x: functional.elu(m.a(x)) * 2, a=nn.Linear(64, 64)), 16, 64, 64)
    turned = weights(Line(lambda m, x: functional.elu(m.a(x)).transpose(1, 2) * x, a=nn.Linear(64, 64)), 16, 64, 64)
    assert turned["transcendental"] > 2 * straight["transcendental"]


def test_what_a_prelu_takes_beyond_a_product_is_with_its_layer() -> None:
    scale = trace(nn.Sequential(nn.Linear(8, 16), nn.PReLU()), torch.empty(32, 8)).layers[1]
    assert scale.kind == "scale"
    assert scale.trailing[0].op == "elementwise"
    assert scale.trailing[0].weight > 5


def test_one_value_for_a_whole_row_is_no_obstacle_to_vectors() -> None:
    """The gradient of a sum is expanded, and the gradient of a relu before it as fast as any."""

    class Summed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(64, 64)

        def forward(self, x: Tensor) -> Tensor:
            return self.first(x).relu().sum(-1).sum()

    assert weights(Summed(), 16, 64)["elementwise"] == 1.0


def test_a_pool_of_no_images() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(2), nn.AvgPool2d(2))
    assert trace(model, torch.empty(0, 3, 16, 16)).layers[0].kind == "conv"


class Turned(nn.Module):
    """A layer norm between convolutions of a sequence, as in speech models: channels last for the norm alone."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.norm, self.after = nn.Conv1d(8, 16, 3), nn.LayerNorm(16), nn.Conv1d(16, 16, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.after(self.norm(self.before(x).transpose(1, 2)).transpose(1, 2))
        return out


def copies(network: Network) -> dict[str, int]:
    moved = {layer.name: sum(op.values_in for op in layer.trailing if op.op == "copy") for layer in network.layers}
    return {name: int(values) for name, values in moved.items() if values}


def test_operands_out_of_order_are_copied_forward_and_backward() -> None:
    turned = 4 * 16 * 98
    # The norm puts its input in order in both passes, and its gradient; the convolution behind it puts its input.
    assert copies(trace(Turned(), torch.randn(4, 8, 100))) == {"norm": 3 * turned, "after": 2 * turned}
    straight = nn.Sequential(nn.Conv1d(8, 16, 3), nn.BatchNorm1d(16), nn.Conv1d(16, 16, 3))
    assert copies(trace(straight, torch.randn(4, 8, 100))) == {}


def test_convolutions_keep_channels_last_and_copy_nothing() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3))
    images = torch.randn(4, 3, 20, 20)
    usual = trace(model, images)
    turned: nn.Module = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    last = trace(turned, images.to(memory_format=torch.channels_last))
    assert last.layers[0].trailing == usual.layers[0].trailing  # no copy, and ReLU costs what it does elsewhere
