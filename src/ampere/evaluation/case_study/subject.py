"""What the case study is about: the paper's 5-layer CNN, two of whose outputs are the classes, and how it is pruned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ampere.estimation import Estimator
from ampere.models.families import CNN5
from ampere.models.loading import find_space
from ampere.profiling.experiment import Experiment
from ampere.profiling.sources import SpaceSource

if TYPE_CHECKING:
    from torch import nn

    from ampere.pruning.result import Pruned

FAMILY = "cnn5"
SHARE = 0.5  # of the original's energy that may be spent
CONFIDENCE = 0.8  # with which ours must stay inside
ORIGINAL, OURS, FLOPS = "original", "ampere", "flops"
MODELS = (ORIGINAL, OURS, FLOPS)
CHANNELS = [24, 48, 96, 192]  # three quarters of the paper's: some milliseconds an iteration
BATCH = int(CNN5["batch"])


def arguments(channels: list[int]) -> dict[str, Any]:
    return {**CNN5, "channels": channels}


def experiment(channels: list[int]) -> Experiment:
    return SpaceSource(find_space(FAMILY)).of(arguments(channels))


def built(seed: int) -> tuple[nn.Module, Any]:
    """The original with the weights of a seed."""
    import torch

    from ampere.models.cnn5 import build

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build(**arguments(CHANNELS))


def pruned(seed: int, way: str, estimator: Estimator, joules: float) -> Pruned:
    """Ours is held to joules that it knows of; FLOPs to their own half."""
    from ampere.pruning.pruning import prune

    model, inputs = built(seed)
    if way == FLOPS:
        return prune(model, inputs, SHARE, estimator, "flops", allocator="tuned", seed=seed)
    budget = f"{joules:.12g}J"
    return prune(model, inputs, budget, estimator, "energy", confidence=CONFIDENCE, allocator="tuned", seed=seed)
