"""Any encoder-decoder with skip connections, on sequences, images or volumes; attention at the bottom where asked."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

CONVS: dict[int, Any] = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
TRANSPOSED: dict[int, Any] = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}
BATCH_NORMS: dict[int, Any] = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}
POOLS: dict[int, Any] = {1: nn.MaxPool1d, 2: nn.MaxPool2d, 3: nn.MaxPool3d}
LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}
HEADS = 4


class Attention(nn.Module):
    """Self-attention over all places, added to what it reads."""

    def __init__(self, channels: int, conv: Any) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(HEADS, channels)
        self.qkv, self.out = conv(channels, 3 * channels, 1), conv(channels, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, channels = x.shape[:2]
        query, key, value = self.qkv(self.norm(x)).reshape(batch, 3 * HEADS, channels // HEADS, -1).mT.chunk(3, 1)
        attended = F.scaled_dot_product_attention(query, key, value)
        found: torch.Tensor = x + self.out(attended.mT.reshape(x.shape))
        return found


class EncoderDecoder(nn.Module):
    def __init__(self, down: list[nn.Module], bottom: nn.Module, up: list[nn.Module], joined: list[nn.Module]) -> None:
        super().__init__()
        self.down, self.bottom = nn.ModuleList(down), bottom
        self.up, self.joined = nn.ModuleList(up), nn.ModuleList(joined)
        self.pool: nn.Module
        self.head: nn.Module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skips = []
        for block in self.down:
            x = block(x)
            skips.append(x)
            x = self.pool(x)
        x = self.bottom(x)
        for up, block in zip(self.up, self.joined):
            x = block(torch.cat([up(x), skips.pop()], 1))
        found: torch.Tensor = self.head(x)
        return found


def build(
    batch: int,
    dimensions: int,
    size: int,
    channels_in: int,
    width: int,
    depth: int,
    norm: str,
    up: str,
    attention: bool,
    classes: int,
) -> tuple[nn.Module, torch.Tensor]:
    conv, widths = CONVS[dimensions], [width << level for level in range(depth + 1)]

    def block(before: int, after: int) -> nn.Module:
        normed = nn.GroupNorm(HEADS, after) if norm == "group" else BATCH_NORMS[dimensions](after)
        first, second = conv(before, after, 3, padding=1), conv(after, after, 3, padding=1)
        return nn.Sequential(first, normed, nn.SiLU(), second, nn.ReLU())

    def upwards(before: int, after: int) -> nn.Module:
        if up == "transposed":
            made: nn.Module = TRANSPOSED[dimensions](before, after, 2, 2)
            return made
        return nn.Sequential(
            nn.Upsample(scale_factor=2, mode=LINEAR[dimensions] if up == "linear" else up),
            conv(before, after, 3, padding=1),
        )

    down = [block(before, after) for before, after in zip([channels_in, *widths], widths[:-1])]
    bottom: nn.Module = block(widths[-2], widths[-1])
    if attention:
        bottom = nn.Sequential(bottom, Attention(widths[-1], conv))
    ups = [upwards(before, after) for before, after in zip(widths[:0:-1], widths[-2::-1])]
    joined = [block(2 * after, after) for after in widths[-2::-1]]
    model = EncoderDecoder(down, bottom, ups, joined)
    model.pool, model.head = POOLS[dimensions](2), conv(width, classes, 1)
    return model, torch.randn(batch, channels_in, *[size] * dimensions)
