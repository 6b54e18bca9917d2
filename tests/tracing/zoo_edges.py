"""One rare thing a model: each is a line of forward with its parts."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as functional
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


class Line(nn.Module):
    def __init__(self, line: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        self.line = line
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *args: Any) -> Any:
        return self.line(self, *args)


class Product(torch.autograd.Function):
    """Its backward has fewer products than its forward would make one think."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return x @ weight @ weight

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        return grad @ weight.t(), x.t() @ grad


def parameter(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(shape))


def linear(line: Callable[..., Any], *shape: int, **parts: Any) -> tuple[nn.Module, Any]:
    return Line(line, linear=nn.Linear(4, 4), **parts), torch.empty(shape or (3, 4))


def stack() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))


def checkpointed(reentrant: bool) -> tuple[nn.Module, Any]:
    return linear(
        lambda m, x: m.head(checkpoint(m.stack, m.linear(x), use_reentrant=reentrant)), head=stack(), stack=stack()
    )


def attend(model: Any, query: Tensor, key: Tensor) -> Any:
    return functional.scaled_dot_product_attention(model.q(query)[:, None], key[:, None], key[:, None])


def only_biases() -> tuple[nn.Module, Any]:
    model = nn.Sequential(nn.Linear(4, 4), nn.Conv1d(3, 5, 1), nn.LayerNorm(4), nn.Linear(4, 2))
    for name, weight in model.named_parameters():
        weight.requires_grad_(name.endswith("bias"))
    return model, torch.empty(2, 3, 4)


def written_in_place(model: Any, x: Tensor) -> Any:
    hidden = model.linear(x)
    out = torch.zeros_like(hidden)
    out[:, :2] = hidden[:, 2:]
    return out


EDGES: dict[str, Callable[[], tuple[nn.Module, Any]]] = {
    "fft_in_root": lambda: linear(lambda m, x: torch.fft.fft(m.linear(x)).real),
    "fft_of_parameter": lambda: linear(lambda m, x: torch.fft.fft(m.w).real * m.linear(x), w=parameter(4)),
    "function_in_root": lambda: linear(lambda m, x: Product.apply(m.linear(x), m.w), w=parameter(4, 4)),
    "function_in_module": lambda: (
        nn.Sequential(nn.Linear(4, 4), linear(lambda m, x: Product.apply(m.linear(x), m.w), w=parameter(4, 4))[0]),
        torch.empty(3, 4),
    ),
    "checkpoint": lambda: checkpointed(False),
    "checkpoint_reentrant": lambda: checkpointed(True),
    "tensors_on_the_side": lambda: linear(
        lambda m, x: m.linear(x + m.table[0]) * torch.arange(4), table=[torch.ones(4)]
    ),
    "attention_weights": lambda: (
        Line(lambda m, x: m.look(x, x, x)[0], look=nn.MultiheadAttention(8, 2)),
        torch.empty(5, 3, 8),
    ),
    "whole_transformer": lambda: (
        nn.Transformer(8, 2, 1, 1, 16, batch_first=True),
        (torch.empty(2, 5, 8), torch.empty(2, 4, 8)),
    ),
    "attention_to_constants": lambda: (
        nn.ModuleList([Line(attend, q=nn.Linear(8, 8))])[0],
        (torch.empty(2, 5, 8), torch.empty(2, 6, 8)),
    ),
    "projected_lstm": lambda: (
        Line(lambda m, x: m.lstm(x)[0], lstm=nn.LSTM(4, 6, proj_size=3)),
        torch.empty(5, 2, 4),
    ),
    "frozen_lstm": lambda: linear(lambda m, x: m.r(m.linear(x))[0], 5, 2, 4, r=nn.LSTM(4, 6, 2).requires_grad_(False)),
    "bare_rnn": lambda: (nn.RNN(4, 6, 2, nonlinearity="relu", bias=False), torch.empty(5, 2, 4)),
    "unbatched_gru": lambda: (nn.GRU(4, 6, bidirectional=True), torch.empty(5, 4)),
    "lstm_cell": lambda: (Line(lambda m, x: m.cell(x, m.cell(x))[0], cell=nn.LSTMCell(4, 6)), torch.empty(5, 4)),
    "only_biases": only_biases,
    "written_in_place": lambda: linear(written_in_place),
    "transposed_groups": lambda: (
        nn.Sequential(nn.Conv1d(4, 8, 3, groups=4), nn.ConvTranspose1d(8, 4, 3, stride=2, groups=2)),
        torch.empty(2, 4, 8),
    ),
    "volumes": lambda: (
        nn.Sequential(nn.Conv3d(2, 4, 3, dilation=2), nn.BatchNorm3d(4), nn.ConvTranspose3d(4, 4, 2, stride=2)),
        torch.empty(2, 2, 8, 8, 8),
    ),
    "spectral_norm": lambda: (
        nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(6, 5)), nn.Linear(5, 2)),
        torch.empty(2, 6),
    ),
    "computed_kernel": lambda: linear(lambda m, x: functional.conv1d(x, m.linear(x.mean(-1)).view(2, 4, 1)), 2, 4, 8),
    "experts": lambda: (
        Line(lambda m, x: torch.einsum("bk,ekm->ebm", x, m.w), w=parameter(3, 4, 5)),
        torch.empty(6, 4),
    ),
    "weight_on_the_left": lambda: linear(lambda m, x: m.w @ m.linear(x), 2, 5, 4, w=parameter(7, 5)),
    "scale_from_parameter": lambda: linear(lambda m, x: m.linear(x) * (1 + m.w), w=parameter(4)),
    "constant_factor": lambda: linear(lambda m, x: m.linear(x) @ torch.ones(4, 3, device=x.device)),
    "own_loss": lambda: linear(lambda m, x: {"loss": m.linear(x).square().mean() + m.linear.weight.square().sum()}),
}
