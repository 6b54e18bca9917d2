"""A stack of LSTM layers, each with its own width, that reads a 28x28 image row by row."""

from __future__ import annotations

import torch
from torch import nn

ROWS, COLUMNS, CLASSES = 28, 28, 10


class Stack(nn.Module):
    def __init__(self, hidden: list[int]) -> None:
        super().__init__()
        widths = zip([COLUMNS, *hidden], hidden)
        self.layers = nn.ModuleList(nn.LSTM(before, after, batch_first=True) for before, after in widths)
        self.head = nn.Linear(hidden[-1], CLASSES)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            rows, _ = layer(rows)
        logits: torch.Tensor = self.head(rows[:, -1])
        return logits


def build(hidden: list[int], batch: int) -> tuple[nn.Module, torch.Tensor]:
    return Stack(hidden), torch.randn(batch, ROWS, COLUMNS)
