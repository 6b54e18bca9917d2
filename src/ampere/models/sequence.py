"""Any network that answers at every step of a sequence: stacked recurrent layers, or a loop as users write it.

A loop has a cell that is called at every step, or a state that decays and is added to, as in state space models.
"""

from __future__ import annotations

import torch
from torch import nn

LAYERS: dict[str, type[nn.LSTM] | type[nn.GRU]] = {"lstm": nn.LSTM, "gru": nn.GRU}
STATES = 8  # of each channel that decays


class Stacked(nn.Module):
    def __init__(self, layers: nn.Module) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.layers(x)[0]
        return found


class StepByStep(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.cell = nn.GRUCell(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state, states = torch.zeros_like(x[:, 0]), []
        for step in range(x.shape[1]):
            state = self.cell(x[:, step], state)
            states.append(state)
        return torch.stack(states, 1)


class Decaying(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.decay, self.reads = nn.Linear(width, width * STATES), nn.Linear(width, STATES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        decay, reads = self.decay(x).sigmoid().unflatten(2, (-1, STATES)), self.reads(x).unsqueeze(3)
        added, answers = (1 - decay) * x.unsqueeze(3), []
        state = torch.zeros_like(added[:, 0])
        for step in range(x.shape[1]):
            state = decay[:, step] * state + added[:, step]
            answers.append((state @ reads[:, step])[:, :, 0])
        return torch.stack(answers, 1)


def build(
    batch: int,
    sequence: int,
    cell: str,
    width: int,
    layers: int,
    both_ways: bool,
    dropout: float,
    vocabulary: int,
    outputs: int,
) -> tuple[nn.Module, torch.Tensor]:
    modules: list[nn.Module] = [nn.Embedding(vocabulary, width), nn.Dropout(dropout)]
    if cell in LAYERS:
        between = dropout if layers > 1 else 0.0
        made = LAYERS[cell](width, width, layers, batch_first=True, bidirectional=both_ways, dropout=between)
        modules.append(Stacked(made))
        width *= 1 + both_ways
    else:
        modules += [StepByStep(width) if cell == "cell" else Decaying(width) for _ in range(layers)]
    return nn.Sequential(*modules, nn.Linear(width, outputs)), torch.randint(vocabulary, (batch, sequence))
