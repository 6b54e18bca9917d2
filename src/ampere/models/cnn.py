"""Any plain CNN, from a list of its convolutions."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


def build(
    batch: int, size: int, channels_in: int, convs: list[dict[str, Any]], norm: bool, head: str, classes: int
) -> tuple[nn.Module, torch.Tensor]:
    modules: list[nn.Module] = []
    channels, places = channels_in, size
    for conv in convs:
        modules += block(channels, conv, norm)
        channels = conv["channels"]
        places = ((places - 1) // conv["stride"] + 1) // (1 + conv["pool"])
    if head == "average":
        modules.append(nn.AdaptiveAvgPool2d(1))
        places = 1
    modules += [nn.Flatten(), nn.Linear(channels * places**2, classes)]
    return nn.Sequential(*modules), torch.randn(batch, channels_in, size, size)


def block(channels_in: int, conv: dict[str, Any], norm: bool) -> list[nn.Module]:
    kernel, channels = conv["kernel"], conv["channels"]
    groups = channels_in if conv["depthwise"] else 1
    convolution = nn.Conv2d(channels_in, channels, kernel, conv["stride"], kernel // 2, groups=groups, bias=not norm)
    modules: list[nn.Module] = [convolution]
    if norm:
        modules.append(nn.BatchNorm2d(channels))
    modules.append(nn.ReLU())
    if conv["pool"]:
        modules.append(nn.MaxPool2d(2))
    return modules
