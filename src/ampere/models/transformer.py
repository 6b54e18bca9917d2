"""A transformer encoder that classifies texts: embedding, encoder layers, mean over the tokens, linear head."""

from __future__ import annotations

import torch
from torch import nn

CLASSES = 10


class Classifier(nn.Module):
    def __init__(self, layer: nn.TransformerEncoderLayer, layers: int, width: int, sequence: int, vocabulary: int):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.position = nn.Parameter(torch.zeros(sequence, width))
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        encoded = self.encoder(self.embedding(tokens) + self.position)
        logits: torch.Tensor = self.head(encoded.mean(dim=1))
        return logits


def build(
    layers: int, width: int, heads: int, ff: int, sequence: int, vocabulary: int, dropout: float, batch: int
) -> tuple[nn.Module, torch.Tensor]:
    layer = nn.TransformerEncoderLayer(width, heads, ff, dropout, batch_first=True)
    model = Classifier(layer, layers, width, sequence, vocabulary)
    return model, torch.randint(vocabulary, (batch, sequence))
