"""One layer alone, of any size: large ones cost more than a whole small network, and fit into a profile only so."""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch import nn


class Recurrent(nn.Module):
    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.cell(x)[0]
        return found


class SelfAttention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, max(1, width // 64), batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.attention(x, x, x, need_weights=False)[0]
        return found


class Scaled(nn.Module):
    """A factor for each channel, as normalizations and residual branches written by hand have."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor


class Products(nn.Module):
    """Many small matrices, each times itself transposed, as pairs of features or capsules are compared."""

    def __init__(self, width: int, rows: int) -> None:
        super().__init__()
        self.scaled, self.rows = Scaled(width), rows

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        matrices = self.scaled(x).view(-1, self.rows, x.shape[-1])
        return torch.bmm(matrices, matrices.transpose(1, 2))


def _convolution(before: int, after: int, kernel: int, stride: int, groups: int = 1) -> nn.Module:
    return nn.Conv2d(before, after, kernel, stride, kernel // 2, groups=groups)


LAYERS: dict[str, Callable[[int, int, int, int], nn.Module]] = {
    "conv": _convolution,
    "pointwise": lambda before, after, kernel, stride: nn.Conv2d(before, after, 1),
    "depthwise": lambda before, after, kernel, stride: _convolution(before, before, kernel, stride, before),
    "grouped": lambda before, after, kernel, stride: _convolution(before, before, kernel, stride, before // after),
    "transposed": lambda before, after, kernel, stride: nn.ConvTranspose2d(before, after, kernel, 2, kernel // 2 - 1),
    "norm": lambda before, *_: nn.BatchNorm2d(before),
    "linear": lambda before, after, *_: nn.Linear(before, after),
    "layer_norm": lambda before, *_: nn.LayerNorm(before),
    "scaled": lambda before, *_: Scaled(before),
    "recurrent": lambda before, *_: Recurrent(nn.LSTM(before, before, batch_first=True)),
    "gated": lambda before, *_: Recurrent(nn.GRU(before, before, batch_first=True)),
    "attention": lambda before, *_: SelfAttention(before),
    "products": lambda before, after, *_: Products(before, after),
    "embedding": lambda before, after, *_: nn.Embedding(after, before),
    "bag": lambda before, after, *_: nn.EmbeddingBag(after, before),
}
IMAGE_MODULES = (nn.Conv2d, nn.ConvTranspose2d, nn.BatchNorm2d)
TABLE_MODULES = (nn.Embedding, nn.EmbeddingBag)


def build(
    batch: int, layer: str, places: int, before: int, after: int, kernel: int = 3, stride: int = 1
) -> tuple[nn.Module, Any]:
    """`places` are pixels along a side, tokens, or matrices; `after` are the rows of a table or of each matrix, or the
    channels of a group."""
    lone = LAYERS[layer](before, after, kernel, stride)
    if isinstance(lone, IMAGE_MODULES):
        return nn.Sequential(lone), torch.randn(batch, before, places, places)
    if isinstance(lone, TABLE_MODULES):
        return nn.Sequential(lone), torch.randint(after, (batch, places))
    return nn.Sequential(lone), torch.randn(batch, places * (after if layer == "products" else 1), before)
