"""Any MLP: on numbers, on embeddings of categories, or a mixer over tokens."""

from __future__ import annotations

from typing import Callable

import torch
from torch import nn

ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "gelu": nn.GELU, "tanh": nn.Tanh}


class Categories(nn.Module):
    """The embeddings of all categories, side by side; sums of several of each where they are in bags."""

    def __init__(self, tables: list[int], width: int, bag: int) -> None:
        super().__init__()
        table: Callable[[int, int], nn.Module] = nn.EmbeddingBag if bag else nn.Embedding
        self.tables = nn.ModuleList([table(rows, width) for rows in tables])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([table(x[:, i]) for i, table in enumerate(self.tables)], 1)


class Mixer(nn.Module):
    def __init__(self, tokens: int, width: int, act: type[nn.Module]) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.tokens = nn.Sequential(nn.Linear(tokens, 2 * tokens), act(), nn.Linear(2 * tokens, tokens))
        self.channels = nn.Sequential(nn.Linear(width, 2 * width), act(), nn.Linear(2 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.tokens(self.first(x).transpose(1, 2)).transpose(1, 2)
        found: torch.Tensor = x + self.channels(self.second(x))
        return found


class Mean(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(1)


def build(
    batch: int,
    tables: list[int],
    tokens: int,
    width: int,
    depth: int,
    norm: str,
    activation: str,
    dropout: float,
    outputs: int,
    bag: int = 0,
) -> tuple[nn.Module, torch.Tensor]:
    act = ACTIVATIONS[activation]
    if tokens:
        mixers = [Mixer(tokens, width, act) for _ in range(depth)]
        return nn.Sequential(*mixers, Mean(), nn.Linear(width, outputs)), torch.randn(batch, tokens, width)
    modules: list[nn.Module] = [Categories(tables, width, bag)] if tables else []
    before = width * max(1, len(tables))
    norms: dict[str, Callable[[int], nn.Module]] = {"batch": nn.BatchNorm1d, "layer": nn.LayerNorm}
    for _ in range(depth):
        modules += [nn.Linear(before, width), *([norms[norm](width)] if norm in norms else []), act()]
        modules += [nn.Dropout(dropout)] if dropout else []
        before = width
    model = nn.Sequential(*modules, nn.Linear(before, outputs))
    several = (bag,) if bag else ()
    return model, torch.randint(min(tables), (batch, len(tables), *several)) if tables else torch.randn(batch, width)
