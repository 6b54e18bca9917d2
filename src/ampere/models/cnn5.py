"""The paper's 5-layer CNN: four 3x3 convolutions, pools after the first two, one linear layer."""

from __future__ import annotations

import torch
from torch import nn


def build(channels: list[int], batch: int) -> tuple[nn.Module, torch.Tensor]:
    a, b, c, d = channels
    model = nn.Sequential(
        nn.Conv2d(1, a, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(a, b, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(b, c, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(c, d, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(d * 7 * 7, 10),
    )
    return model, torch.randn(batch, 1, 28, 28)
