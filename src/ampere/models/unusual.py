"""Operations that no layer kind knows, between layers that are known: what such operations cost as a class."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional


def _spectral(x: torch.Tensor) -> torch.Tensor:
    return torch.fft.irfft(torch.fft.rfft(x, dim=1) * 0.5, n=x.shape[1], dim=1)


def _sampled(x: torch.Tensor) -> torch.Tensor:
    grid = torch.tanh(x[:, :, None, :2])
    found = functional.grid_sample(x.transpose(1, 2)[:, :, None], grid, align_corners=False)
    return found[..., 0].transpose(1, 2)


def _distances(x: torch.Tensor) -> torch.Tensor:
    near = torch.exp(-torch.cdist(x, x, p=1.0))
    return near @ x


def _solution(x: torch.Tensor) -> torch.Tensor:
    square = x.transpose(1, 2) @ x / x.shape[1] + torch.eye(x.shape[2], device=x.device)
    return torch.linalg.solve(square, x.transpose(1, 2)).transpose(1, 2)


OPERATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "spectral": _spectral,
    "transform": lambda x: torch.fft.fft2(x).real,
    "sampled": _sampled,
    "distances": _distances,
    "solution": _solution,
    "median": lambda x: x - x.median(1, keepdim=True).values,
    "running": lambda x: x.cummax(1).values + x.cumprod(1),
    "enlarged": lambda x: functional.interpolate(x[:, None], scale_factor=2.0, mode="bicubic")[:, 0, ::2, ::2],
}


class Unusual(nn.Module):
    def __init__(self, operation: str, width: int, layers: int) -> None:
        super().__init__()
        self.operation = OPERATIONS[operation]
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
            x = x + self.operation(x)
        return x


def build(batch: int, operation: str, places: int, width: int, layers: int) -> tuple[nn.Module, torch.Tensor]:
    return Unusual(operation, width, layers), torch.randn(batch, places, width)
