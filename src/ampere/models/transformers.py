"""Any transformer: encoder or causal decoder, on tokens or on patches of an image."""

from __future__ import annotations

import torch
from torch import nn

VOCABULARY, PATCH_VALUES = 1000, 48  # a patch is 4x4 pixels of three colours


class Transformer(nn.Module):
    """An encoder answers once for its mean token; a causal decoder answers for every token."""

    mask: torch.Tensor | None

    def __init__(self, embedding: nn.Module, encoder: nn.Module, sequence: int, head: nn.Linear, causal: bool) -> None:
        super().__init__()
        self.embedding = embedding
        self.position = nn.Parameter(torch.zeros(sequence, head.in_features))
        self.encoder = encoder
        self.head = head
        mask = nn.Transformer.generate_square_subsequent_mask(sequence) if causal else None
        self.register_buffer("mask", mask)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        embedded = self.embedding(x) + self.position
        encoded = self.encoder(embedded, mask=self.mask, is_causal=self.mask is not None)
        outputs: torch.Tensor = self.head(encoded if self.mask is not None else encoded.mean(dim=1))
        return outputs


def build(
    batch: int,
    sequence: int,
    layers: int,
    width: int,
    heads: int,
    ff: int,
    causal: bool,
    norm_first: bool,
    reads: str,
    outputs: int,
    dropout: float,
    activation: str = "relu",
) -> tuple[nn.Module, torch.Tensor]:
    layer = nn.TransformerEncoderLayer(width, heads, ff, dropout, activation, batch_first=True, norm_first=norm_first)
    encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
    embedding = nn.Embedding(VOCABULARY, width) if reads == "tokens" else nn.Linear(PATCH_VALUES, width)
    model = Transformer(embedding, encoder, sequence, nn.Linear(width, outputs), causal)
    return model, example(reads, batch, sequence)


def example(reads: str, batch: int, sequence: int) -> torch.Tensor:
    if reads == "tokens":
        return torch.randint(VOCABULARY, (batch, sequence))
    return torch.randn(batch, sequence, PATCH_VALUES)
