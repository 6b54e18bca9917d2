"""Any decoder of tokens as written by hand: root-mean-square norms, rotary positions, gated MLPs, no biases."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Attention(nn.Module):
    cos: torch.Tensor
    sin: torch.Tensor
    mask: torch.Tensor

    def __init__(self, width: int, heads: int, sequence: int, fused: bool) -> None:
        super().__init__()
        self.heads, self.fused = heads, fused
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        each = width // heads
        angles = torch.arange(sequence).float()[:, None] * torch.linspace(1.0, 0.01, each)[None, :]
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())
        self.register_buffer("mask", torch.full((sequence, sequence), -1e9).triu(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, sequence, width = x.shape
        apart = self.qkv(x).view(batch, sequence, 3 * self.heads, -1).transpose(1, 2)
        query, key, value = apart.chunk(3, 1)
        query, key = self._turned(query), self._turned(key)
        if self.fused:
            attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5 + self.mask
            attended = scores.softmax(-1) @ value
        found: torch.Tensor = self.out(attended.transpose(1, 2).reshape(batch, sequence, width))
        return found

    def _turned(self, x: torch.Tensor) -> torch.Tensor:
        half = x.shape[-1] // 2
        return x * self.cos + torch.cat([-x[..., half:], x[..., :half]], -1) * self.sin


class Block(nn.Module):
    def __init__(self, width: int, heads: int, sequence: int, ff: int, fused: bool) -> None:
        super().__init__()
        self.before, self.attention = RMSNorm(width), Attention(width, heads, sequence, fused)
        self.between = RMSNorm(width)
        self.gate, self.up = nn.Linear(width, ff, bias=False), nn.Linear(width, ff, bias=False)
        self.down = nn.Linear(ff, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.before(x))
        y = self.between(x)
        found: torch.Tensor = x + self.down(F.silu(self.gate(y)) * self.up(y))
        return found


def build(
    batch: int, sequence: int, layers: int, width: int, heads: int, ff: int, fused: bool, vocabulary: int
) -> tuple[nn.Module, torch.Tensor]:
    blocks = [Block(width, heads, sequence, ff, fused) for _ in range(layers)]
    head = nn.Linear(width, vocabulary, bias=False)
    model = nn.Sequential(nn.Embedding(vocabulary, width), *blocks, RMSNorm(width), head)
    return model, torch.randint(vocabulary, (batch, sequence))
