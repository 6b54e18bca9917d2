"""A model of your own: a function that builds it, and returns it with one batch of inputs.

ampere estimate examples/first_model.py:build
"""

import torch
from torch import nn


def build(batch: int = 16, width: int = 32) -> tuple[nn.Module, torch.Tensor]:
    model = nn.Sequential(
        nn.Conv2d(3, width, 3, padding=1),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(32 * width, 10),
    )
    return model, torch.randn(batch, 3, 32, 32)
