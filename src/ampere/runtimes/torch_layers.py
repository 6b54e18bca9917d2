"""Layer kinds as PyTorch modules: each takes the tensors that `ampere.core.wiring` says it reads."""

from typing import Any, Callable, Dict, Type

import torch
from torch import Tensor, nn

from ampere.core import Layer

from .table import checked_builders
from .torch_operation import Operation

DROPOUT = 0.1  # the usual share; drawing halves would cost twice as much

CONVOLUTIONS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
TRANSPOSED = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}
BATCH_NORMS = {0: nn.BatchNorm1d, 1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}
RECURRENT = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}


def build_layer(layer: Layer) -> nn.Module:
    return BUILDERS[layer.kind](layer).requires_grad_(layer.trainable)


def _convolution(layer: Layer) -> nn.Module:
    c: Any = layer.config
    module: Any = CONVOLUTIONS[len(c["kernel"])]
    return _convolve(module, layer)


def _transposed(layer: Layer) -> nn.Module:
    c: Any = layer.config
    module: Any = TRANSPOSED[len(c["kernel"])]
    return _convolve(module, layer, output_padding=c["output_padding"])


def _convolve(module: Type[Any], layer: Layer, **more: Any) -> nn.Module:
    c: Any = layer.config
    made: nn.Module = module(
        layer.channels_in,
        layer.channels_out,
        c["kernel"],
        stride=c["stride"],
        padding=c["padding"],
        dilation=c["dilation"],
        groups=c["groups"] or layer.channels_in,
        bias=bool(c["bias"]),
        **more,
    )
    return made


def _linear(layer: Layer) -> nn.Module:
    return nn.Linear(layer.channels_in, layer.channels_out, bias=bool(layer.config["bias"]))


def _norm_batch(layer: Layer) -> nn.Module:
    return _biased(BATCH_NORMS[len(layer.config["size"])](layer.channels_in), layer)


def _norm_layer(layer: Layer) -> nn.Module:
    groups = layer.config.get("groups")
    return _biased(GroupNorm(groups, layer.channels_in) if groups else nn.LayerNorm(layer.channels_in), layer)


def _biased(norm: Any, layer: Layer) -> nn.Module:
    if not layer.config.get("bias", True):
        norm.bias = None
    made: nn.Module = norm
    return made


class GroupNorm(nn.GroupNorm):
    """On (batch, places, channels), which the channels' own place is a free reshape away from."""

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input.reshape(input.shape[0], self.num_channels, -1)).reshape(input.shape)


class Recurrent(nn.Module):
    """Its sequence of outputs; the final state is left out."""

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        c: Any = layer.config
        self.cell = RECURRENT[layer.kind](
            layer.channels_in,
            layer.channels_out,
            num_layers=c["layers"],
            bias=bool(c["bias"]),
            batch_first=True,
            bidirectional=c["directions"] == 2,
        )

    def forward(self, sequence: Tensor, *states: Tensor) -> Tensor:
        given = states if len(states) == 2 else states[0] if states else None
        output: Tensor = self.cell(sequence, given)[0]
        return output


class Scale(nn.Module):
    """A product with a parameter, broadcast over all that precedes the channels."""

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(layer.channels_out))
        self.repeats = -(-layer.config["values"] // layer.channels_out)
        self.fits = layer.config["values"] % layer.channels_out == 0

    def forward(self, values: Tensor) -> Tensor:
        if self.fits:
            return (values.reshape(self.repeats, -1) * self.weight).reshape(values.shape)
        return values * self.weight.repeat(self.repeats)[: values.numel()]


class EmbeddingBag(nn.EmbeddingBag):
    """Bags that are as even as the number of tokens lets them be."""

    starts: Tensor

    def __init__(self, layer: Layer) -> None:
        c: Any = layer.config
        mode = "mean" if c.get("mean") else "max" if c.get("largest") else "sum"
        super().__init__(layer.channels_in, layer.channels_out, mode=mode)
        self.register_buffer("starts", torch.arange(c["bags"]) * c["tokens"] // c["bags"])

    def forward(self, tokens: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(tokens, self.starts)


class Gather(nn.Module):
    def __init__(self, layer: Layer) -> None:
        super().__init__()
        self.indexed = bool(layer.config.get("indexed"))

    def forward(self, rows: Tensor, index: Tensor) -> Tensor:
        if self.indexed:
            return rows[index]
        return rows.gather(0, index[:, None]) if rows.shape[1] == 1 else rows.index_select(0, index)


class Scatter(nn.Module):
    def __init__(self, layer: Layer) -> None:
        super().__init__()
        self.rows = int(layer.config["rows_out"])

    def forward(self, rows: Tensor, index: Tensor) -> Tensor:
        zeros = rows.new_zeros(self.rows, rows.shape[1])
        return zeros.scatter_add(0, index[:, None], rows) if rows.shape[1] == 1 else zeros.index_add(0, index, rows)


class Along(nn.Module):
    """An operation along the second dimension, where sequences have their values."""

    def __init__(self, operation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.operation = operation

    def forward(self, values: Tensor) -> Tensor:
        return self.operation(values)


class Matmul(nn.Module):
    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        return torch.matmul(left, right)


class Attention(nn.Module):
    def __init__(self, layer: Layer) -> None:
        super().__init__()
        self.causal = bool(layer.config.get("causal", False))
        self.dropout = DROPOUT if layer.config.get("dropout") else 0.0

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        attend = nn.functional.scaled_dot_product_attention
        return attend(query, key, value, dropout_p=self.dropout, is_causal=self.causal)


BUILDERS: Dict[str, Callable[[Layer], nn.Module]] = checked_builders(
    "torch",
    {
        "conv": _convolution,
        "conv_grouped": _convolution,
        "conv_transposed": _transposed,
        "linear": _linear,
        "matmul": lambda layer: Matmul(),
        "attention": Attention,
        "lstm": Recurrent,
        "gru": Recurrent,
        "rnn": Recurrent,
        "norm_batch": _norm_batch,
        "norm_layer": _norm_layer,
        "embedding": lambda layer: nn.Embedding(
            layer.channels_in, layer.channels_out, sparse=bool(layer.config.get("sparse"))
        ),
        "embedding_bag": EmbeddingBag,
        "gather": Gather,
        "scatter": Scatter,
        "sort": lambda layer: Along(lambda values: values.sort(1).values),
        "top_k": lambda layer: Along(lambda values: values.topk(layer.channels_out, 1).values),
        "scan": lambda layer: Along(lambda values: values.cumsum(1)),
        "scale": Scale,
        "operation": Operation,
        "nonparametric": lambda layer: nn.Identity(),
    },
)
