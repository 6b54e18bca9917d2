"""Any residual CNN: basic, bottleneck and inverted (depthwise) blocks, with or without squeeze-and-excitation."""

from __future__ import annotations

from typing import Callable

import torch
from torch import nn

ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "silu": nn.SiLU, "gelu": nn.GELU}
EXPANSION, SQUEEZED = 4, 4


class Residual(nn.Module):
    def __init__(self, path: nn.Module, skip: nn.Module, after: nn.Module) -> None:
        super().__init__()
        self.path, self.skip, self.after = path, skip, after

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.after(self.path(x) + self.skip(x))
        return found


class SqueezeExcite(nn.Module):
    """Each channel times a gate that all channels' means decide."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        hidden = max(1, channels // SQUEEZED)
        narrow, wide = nn.Conv2d(channels, hidden, 1), nn.Conv2d(hidden, channels, 1)
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), narrow, nn.ReLU(), wide, nn.Sigmoid())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.gate(x)


def build(
    batch: int,
    size: int,
    channels_in: int,
    widths: list[int],
    blocks: int,
    sort: str,
    norm: str,
    squeeze: bool,
    activation: str,
    classes: int,
) -> tuple[nn.Module, torch.Tensor]:
    act = ACTIVATIONS[activation]
    modules: list[nn.Module] = [*conv(channels_in, widths[0], 3, 1, 1, norm), act()]
    channels = widths[0]
    for stage, width in enumerate(widths):
        for number in range(blocks):
            stride = 2 if stage and not number else 1
            path = _path(channels, width, stride, sort, norm, squeeze, act)
            same = channels == width and stride == 1
            skip = nn.Identity() if same else nn.Sequential(*conv(channels, width, 1, stride, 1, norm))
            modules.append(Residual(nn.Sequential(*path), skip, nn.Identity() if sort == "inverted" else act()))
            channels = width
    modules += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)]
    return nn.Sequential(*modules), torch.randn(batch, channels_in, size, size)


def _path(
    before: int, after: int, stride: int, sort: str, norm: str, squeeze: bool, act: type[nn.Module]
) -> list[nn.Module]:
    gate: list[nn.Module] = [SqueezeExcite(after)] if squeeze else []
    if sort == "basic":
        return [*conv(before, after, 3, stride, 1, norm), act(), *conv(after, after, 3, 1, 1, norm), *gate]
    if sort == "bottleneck":
        hidden = max(8, after // EXPANSION)
        middle = [*conv(before, hidden, 1, 1, 1, norm), act(), *conv(hidden, hidden, 3, stride, 1, norm), act()]
        return [*middle, *conv(hidden, after, 1, 1, 1, norm), *gate]
    hidden = before * EXPANSION
    wide = [*conv(before, hidden, 1, 1, 1, norm), act(), *conv(hidden, hidden, 3, stride, hidden, norm), act()]
    return [*wide, *conv(hidden, after, 1, 1, 1, norm), *gate]


def conv(before: int, after: int, kernel: int, stride: int, groups: int, norm: str) -> list[nn.Module]:
    convolution = nn.Conv2d(before, after, kernel, stride, kernel // 2, groups=groups, bias=norm == "none")
    norms: dict[str, Callable[[int], nn.Module]] = {"batch": nn.BatchNorm2d, "group": group_norm}
    return [convolution, norms[norm](after)] if norm in norms else [convolution]


def group_norm(channels: int) -> nn.Module:
    return nn.GroupNorm(next(groups for groups in (8, 4, 2, 1) if channels % groups == 0), channels)
