"""The paper's 5-layer CNN: four 3x3 convolutions, pools after the first two, one linear layer."""

from __future__ import annotations

import torch
from torch import nn


def build(
    channels: list[int], batch: int, channels_in: int = 1, size: int = 28, classes: int = 10
) -> tuple[nn.Module, torch.Tensor]:
    a, b, c, d = channels
    model = nn.Sequential(
        nn.Conv2d(channels_in, a, 3, padding=1),
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
        nn.Linear(d * (size // 4) ** 2, classes),
    )
    return model, torch.randn(batch, channels_in, size, size)
