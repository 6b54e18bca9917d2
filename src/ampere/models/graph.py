"""Any network over a graph: messages are gathered along edges, and scattered to the nodes that they reach."""

from __future__ import annotations

import torch
from torch import nn


class Messages(nn.Module):
    def __init__(self, before: int, after: int, reduce: str) -> None:
        super().__init__()
        self.own, self.other, self.reduce = nn.Linear(before, after), nn.Linear(before, after), reduce

    def forward(self, x: torch.Tensor, sources: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        messages = self.other(x)[sources]
        if self.reduce == "scatter":
            reached = targets[:, None].expand(-1, messages.shape[1])
            received = torch.zeros_like(messages[: len(x)]).scatter_add(0, reached, messages)
        else:
            received = torch.zeros_like(messages[: len(x)]).index_add(0, targets, messages)
        return torch.relu(self.own(x) + received)


class Graph(nn.Module):
    def __init__(self, layers: list[nn.Module], head: nn.Module, ordered: str) -> None:
        super().__init__()
        self.layers, self.head, self.ordered = nn.ModuleList(layers), head, ordered

    def forward(self, x: torch.Tensor, sources: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x, sources, targets)
        if self.ordered == "sort":
            x = x.sort(1).values
        elif self.ordered == "sum":
            x = x.cumsum(1)
        elif self.ordered == "largest":
            x = x + x.topk(max(1, x.shape[1] // 4), 1).values.mean(1, keepdim=True)
        found: torch.Tensor = self.head(x)
        return found


def build(
    batch: int, degree: int, features: int, hidden: int, layers: int, reduce: str, ordered: str, outputs: int
) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    widths = [features, *[hidden] * layers]
    messages: list[nn.Module] = [Messages(a, b, reduce) for a, b in zip(widths, widths[1:])]
    edges = [torch.randint(batch, (batch * degree,)) for _ in range(2)]
    return Graph(messages, nn.Linear(hidden, outputs), ordered), (torch.randn(batch, features), *edges)
