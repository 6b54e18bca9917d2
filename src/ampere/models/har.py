"""Human activity recognition: 1-d convolutions over 128 samples of 9 motion sensors, 6 activities."""

from __future__ import annotations

import torch
from torch import nn

SENSORS, SAMPLES, ACTIVITIES = 9, 128, 6


def build(channels: list[int], fc: int, batch: int) -> tuple[nn.Module, torch.Tensor]:
    modules: list[nn.Module] = []
    for before, after in zip([SENSORS, *channels], channels):
        modules += [nn.Conv1d(before, after, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2)]
    length = SAMPLES >> len(channels)
    modules += [nn.Flatten(), nn.Linear(channels[-1] * length, fc), nn.ReLU(), nn.Linear(fc, ACTIVITIES)]
    return nn.Sequential(*modules), torch.randn(batch, SENSORS, SAMPLES)
