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


LAYERS: dict[str, Callable[[int, int], nn.Module]] = {
    "conv": lambda before, after: nn.Conv2d(before, after, 3, padding=1),
    "pointwise": lambda before, after: nn.Conv2d(before, after, 1),
    "depthwise": lambda before, after: nn.Conv2d(before, before, 3, padding=1, groups=before),
    "transposed": lambda before, after: nn.ConvTranspose2d(before, after, 2, 2),
    "norm": lambda before, after: nn.BatchNorm2d(before),
    "linear": lambda before, after: nn.Linear(before, after),
    "layer_norm": lambda before, after: nn.LayerNorm(before),
    "recurrent": lambda before, after: Recurrent(nn.LSTM(before, before, batch_first=True)),
    "gated": lambda before, after: Recurrent(nn.GRU(before, before, batch_first=True)),
    "attention": lambda before, after: SelfAttention(before),
    "embedding": lambda before, after: nn.Embedding(after, before),
    "bag": lambda before, after: nn.EmbeddingBag(after, before),
}
IMAGES = ("conv", "pointwise", "depthwise", "transposed", "norm")


def build(batch: int, layer: str, places: int, before: int, after: int) -> tuple[nn.Module, Any]:
    """`places` are pixels along a side, or tokens; `after` are the rows of a table."""
    module = nn.Sequential(LAYERS[layer](before, after))
    if layer in IMAGES:
        return module, torch.randn(batch, before, places, places)
    if layer in ("embedding", "bag"):
        return module, torch.randint(after, (batch, places))
    return module, torch.randn(batch, places, before)
