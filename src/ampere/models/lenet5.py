"""LeNet-5 with rectifiers: two convolutions with pools, three linear layers."""

from __future__ import annotations

import torch
from torch import nn


def build(channels: list[int], fc: list[int], batch: int) -> tuple[nn.Module, torch.Tensor]:
    first, second = channels
    model = nn.Sequential(
        nn.Conv2d(1, first, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(first, second, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(second * 5 * 5, fc[0]),
        nn.ReLU(),
        nn.Linear(fc[0], fc[1]),
        nn.ReLU(),
        nn.Linear(fc[1], 10),
    )
    return model, torch.randn(batch, 1, 28, 28)
