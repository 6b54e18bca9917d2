"""The model of the case study: the paper's 5-layer CNN with two classes, how it is pruned and how it is trained."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ampere.core.errors import ModelError
from ampere.devices import Worker
from ampere.estimation.estimate import Estimator
from ampere.models.loading import find_space
from ampere.models.spaces import CNN5
from ampere.profiling.experiment import Experiment
from ampere.profiling.sources import SpaceSource

from .images import Images, Task

if TYPE_CHECKING:
    from torch import nn

    from ampere.pruning.result import Pruned


FAMILY = "cnn5"
SHARE = 0.5  # of the original's energy that may be spent
CONFIDENCE = 0.98  # with which ours must stay inside
ORIGINAL, OURS, FLOPS = "original", "ampere", "flops"
MODELS = (ORIGINAL, OURS, FLOPS)
CHANNELS = [16, 32, 64, 128]  # half of the paper's: a few milliseconds per iteration
BATCH = int(CNN5["batch"])
RATE = 0.1  # of learning
LOOKS, LOOKED_AT = 20, 200  # tests while training, and of how many images; the last one is of all
AT_ONCE = 250  # images of a test


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
    """The model pruned to half its energy, measured and corrected until it is inside the budget, or half its FLOPs."""
    from ampere.pruning.checking import Check
    from ampere.pruning.pruning import prune

    model, inputs = built(seed)
    if way == FLOPS:
        return prune(model, inputs, SHARE, estimator, "flops", allocator="tuned", seed=seed)
    check = Check(device, experiment(CHANNELS), lambda found: experiment(channels_of(found)), device.clock)
    return prune(model, inputs, SHARE, estimator, confidence=CONFIDENCE, allocator="tuned", seed=seed, check=check)


def channels_of(found: Pruned) -> list[int]:
    """The channels of a pruned model, in the order of its layers."""
    return [layer.channels_after[1] for layer in found.layers() if layer.kind.startswith("conv")]


@dataclass(frozen=True)
class Trained:
    curve: tuple[tuple[int, float, float], ...]  # iterations, test loss, test accuracy
    loss: float  # of all test images, at the end
    accuracy: float
    cpu_seconds: float  # of the training steps alone, as this process counted them

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


def train(
    model: nn.Module, task: Task, iterations: int, batch: int, seed: int, report: Callable[[float], None]
) -> Trained:
    """Plain gradient descent on one thread, in the order that the seed gives."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _train(model, task, iterations, batch, seed, report)
    finally:
        torch.set_num_threads(threads)


def _train(
    model: nn.Module, task: Task, iterations: int, batch: int, seed: int, report: Callable[[float], None]
) -> Trained:
    import torch
    from torch.nn.functional import cross_entropy

    pixels, labels = task.trained.tensors()
    order, optimizer = torch.Generator().manual_seed(seed), torch.optim.SGD(model.parameters(), lr=RATE)
    every, curve, spent = max(1, iterations // LOOKS), [], 0.0
    for done in range(iterations + 1):
        if done % every == 0:
            curve.append((done, *tested(model, task.tested, LOOKED_AT)))
            report(done / iterations)
        if done < iterations:
            chosen = torch.randint(len(labels), (batch,), generator=order)
            began = time.process_time()
            optimizer.zero_grad()
            loss = cross_entropy(model(pixels[chosen]), labels[chosen])
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            spent += time.process_time() - began
    return Trained(tuple(curve), *tested(model, task.tested, len(task.tested.labels)), spent)


def tested(model: nn.Module, images: Images, count: int) -> tuple[float, float]:
    """Mean loss and accuracy on the first so many images."""
    import torch
    from torch.nn.functional import cross_entropy

    pixels, labels = (values[:count] for values in images.tensors())
    model.eval()
    with torch.no_grad():
        scores = torch.cat([model(pixels[i : i + AT_ONCE]) for i in range(0, len(pixels), AT_ONCE)])
    model.train()
    loss = float(cross_entropy(scores, labels))
    if not math.isfinite(loss):
        raise ModelError(
            f"the loss on the test images became {loss}: the training diverged; check the images, or take other seeds"
        )
    return loss, float((scores.argmax(1) == labels).double().mean())
