"""ResNet of 32x32 images with batch norms: basic blocks as in ResNet-18, or bottlenecks as in ResNet-50."""

from __future__ import annotations

import torch
from torch import nn

EXPANSION = 4  # how much wider a bottleneck's output is than its middle


class Residual(nn.Module):
    def __init__(self, body: nn.Module, shortcut: nn.Module) -> None:
        super().__init__()
        self.body = body
        self.shortcut = shortcut
        self.relu = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.relu(self.body(x) + self.shortcut(x))
        return out


def conv_norm(before: int, after: int, kernel: int, stride: int = 1) -> list[nn.Module]:
    return [nn.Conv2d(before, after, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(after)]


def shortcut(before: int, after: int, stride: int) -> nn.Module:
    if before == after and stride == 1:
        return nn.Identity()
    return nn.Sequential(*conv_norm(before, after, 1, stride))


def basic(before: int, width: int, stride: int) -> Residual:
    body = [*conv_norm(before, width, 3, stride), nn.ReLU(), *conv_norm(width, width, 3)]
    return Residual(nn.Sequential(*body), shortcut(before, width, stride))


def bottleneck_block(before: int, width: int, stride: int) -> Residual:
    after = EXPANSION * width
    body = [*conv_norm(before, width, 1), nn.ReLU(), *conv_norm(width, width, 3, stride), nn.ReLU()]
    return Residual(nn.Sequential(*body, *conv_norm(width, after, 1)), shortcut(before, after, stride))


def build(
    blocks: list[int], widths: list[int], bottleneck: bool, batch: int, classes: int = 10
) -> tuple[nn.Module, torch.Tensor]:
    block, expansion = (bottleneck_block, EXPANSION) if bottleneck else (basic, 1)
    modules: list[nn.Module] = [*conv_norm(3, widths[0], 3), nn.ReLU()]
    channels = widths[0]
    if len(blocks) != len(widths):
        raise ValueError(f"{len(blocks)} stages of blocks, but {len(widths)} widths")
    for stage, (count, width) in enumerate(zip(blocks, widths)):
        for position in range(count):
            modules.append(block(channels, width, stride=2 if stage and not position else 1))
            channels = width * expansion
    modules += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)]
    return nn.Sequential(*modules), torch.randn(batch, 3, 32, 32)
