"""Any recurrent network: LSTM or GRU layers on tokens or on features, a linear head on the last step."""

from __future__ import annotations

import torch
from torch import nn

VOCABULARY = 1000
CELLS: dict[str, type[nn.LSTM] | type[nn.GRU]] = {"lstm": nn.LSTM, "gru": nn.GRU}


class Recurrent(nn.Module):
    def __init__(self, embedding: nn.Module, layers: list[nn.Module], head: nn.Module) -> None:
        super().__init__()
        self.embedding = embedding
        self.layers = nn.ModuleList(layers)
        self.head = head

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        steps = self.embedding(x)
        for layer in self.layers:
            steps, _ = layer(steps)
        logits: torch.Tensor = self.head(steps[:, -1])
        return logits


def build(
    batch: int, sequence: int, cell: str, hidden: list[int], reads: str, features: int, outputs: int
) -> tuple[nn.Module, torch.Tensor]:
    widths = zip([features, *hidden], hidden)
    layers: list[nn.Module] = [CELLS[cell](before, after, batch_first=True) for before, after in widths]
    head = nn.Linear(hidden[-1], outputs)
    if reads == "tokens":
        model = Recurrent(nn.Embedding(VOCABULARY, features), layers, head)
        return model, torch.randint(VOCABULARY, (batch, sequence))
    return Recurrent(nn.Identity(), layers, head), torch.randn(batch, sequence, features)
