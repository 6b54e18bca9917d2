"""Which of several pruned models learns best: each is trained for a few steps, as the paper's random pruning does."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ampere.core.errors import ModelError

if TYPE_CHECKING:
    from torch import nn

STEPS, RATE = 20, 0.01

ShortTraining = Callable[["nn.Module"], float]  # a copy of a candidate -> its loss afterwards


def on_inputs(inputs: Any) -> ShortTraining:
    """On the example inputs, towards labels that stay the same: what there is without the user's data."""

    def train(model: nn.Module) -> float:
        import torch

        from ampere.runtimes.torch_model import training_loss

        optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=RATE)
        loss = math.nan
        model.train()
        with torch.enable_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            for _ in range(STEPS):
                optimizer.zero_grad()
                value = training_loss(model(**inputs) if isinstance(inputs, dict) else model(*inputs))
                value.backward()
                optimizer.step()
                loss = float(value.detach())
        return loss

    return train


def best(candidates: Sequence[nn.Module], train: ShortTraining) -> int:
    """The place of the one with the least loss; those whose loss is no number are out."""
    losses = [float(train(copy.deepcopy(model))) for model in candidates]
    sound = [(loss, place) for place, loss in enumerate(losses) if math.isfinite(loss)]
    if not sound:
        raise ModelError(
            f"the short training of all {len(losses)} random candidates ended in a loss that is no number: "
            "check the model's inputs and weights for NaN, or use --strategy energy, which trains nothing"
        )
    return min(sound)[1]
