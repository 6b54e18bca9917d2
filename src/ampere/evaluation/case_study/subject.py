"""What the case study is about: the paper's 5-layer CNN, two of whose outputs are the classes, and how it is pruned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ampere.devices import Worker
from ampere.estimation.estimate import Estimator
from ampere.models.loading import find_space
from ampere.models.spaces import CNN5
from ampere.profiling.experiment import Experiment
from ampere.profiling.sources import SpaceSource

if TYPE_CHECKING:
    from torch import nn

    from ampere.pruning.result import Pruned

FAMILY = "cnn5"
SHARE = 0.5  # of the original's energy that may be spent
CONFIDENCE = 0.98  # with which ours must stay inside
ORIGINAL, OURS, FLOPS = "original", "ampere", "flops"
MODELS = (ORIGINAL, OURS, FLOPS)
CHANNELS = [16, 32, 64, 128]  # half of the paper's: a few milliseconds an iteration
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


def pruned(seed: int, way: str, estimator: Estimator, device: Worker) -> Pruned:
    """Ours is measured and corrected until it is inside the budget; FLOPs are held to their own half."""
    from ampere.pruning.checking import Check
    from ampere.pruning.pruning import prune

    model, inputs = built(seed)
    if way == FLOPS:
        return prune(model, inputs, SHARE, estimator, "flops", allocator="tuned", seed=seed)
    check = Check(device, experiment(CHANNELS), lambda found: experiment(channels_of(found)), device.clock)
    return prune(model, inputs, SHARE, estimator, confidence=CONFIDENCE, allocator="tuned", seed=seed, check=check)


def channels_of(found: Pruned) -> list[int]:
    """In the order of the model's layers."""
    return [layer.channels_after[1] for layer in found.layers() if layer.kind.startswith("conv")]
