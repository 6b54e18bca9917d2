"""The model of the case study: the paper's 5-layer CNN, the ways in which it is pruned, and how it is trained."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any

from ampere.core.errors import AmpereError, ModelError
from ampere.devices import Worker
from ampere.estimation.estimator import Estimator
from ampere.models.datasets import Dataset, Examples
from ampere.models.loading import LoadedModel, find_space
from ampere.models.spaces import CNN5, Arguments, Space, widths_up_to
from ampere.profiling.experiment import Experiment
from ampere.profiling.sources import SpaceSource

from .images import KINDS, Kind

if TYPE_CHECKING:
    from torch import nn

    from ampere.pruning.checking import Check
    from ampere.pruning.result import Pruned


FAMILY = "cnn5"
SHARE = 0.5  # of the original's energy that may be spent
CONFIDENCE = 0.98  # with which our closed loop must stay inside
CHANNELS = [16, 32, 64, 128]  # half of the paper's: a few milliseconds per iteration
BATCH = int(CNN5["batch"])
RATE = 0.1  # of learning
LOOKS, LOOKED_AT = 20, 200  # tests while training, and of how many images; the last one is of all
AT_ONCE = 250  # images of a test
CHECKS_AT_MOST = 8
NEAR = 0.02  # a checked result is good if it is below the budget by no more than this share of it


@dataclass(frozen=True)
class Way:
    """How a model is pruned to the budget."""

    title: str
    by_flops: bool = False
    checked: bool = False  # measured, and pruned again with another aim until it is inside the budget
    closed_loop: bool = False  # `ampere prune`: our own search, which learns from its measurements
    strategy: str = "random"


ORIGINAL, OURS, FLOPS = "original", "random_ampere", "random_flops"
CHECKED = {OURS: "random_ampere_checked", FLOPS: "random_flops_checked"}
CLOSED_LOOP = "ampere"
WAYS = {
    OURS: Way("random, by Ampere"),
    FLOPS: Way("random, by FLOPs", by_flops=True),
    CHECKED[OURS]: Way("random, by Ampere, checked", checked=True),
    CHECKED[FLOPS]: Way("random, by FLOPs, checked", by_flops=True, checked=True),
    "energy_aware": Way("layer by layer (Yang et al.), by Ampere", strategy="energy_aware"),
    CLOSED_LOOP: Way("ampere prune", closed_loop=True),
}
MODELS = (ORIGINAL, *WAYS)


def space_of(kind: Kind) -> Space:
    """Networks for such images: the family itself, or one like it for other sizes."""
    if kind == KINDS["mnist"]:
        return find_space(FAMILY)
    original = {**CNN5, "channels_in": kind.channels, "size": kind.size, "classes": kind.classes}

    def sample(rng: Random) -> Arguments:
        return {**original, "channels": widths_up_to(rng, CNN5["channels"])}

    name, title = (
        f"{FAMILY}-{kind.channels}x{kind.size}-{kind.classes}",
        f"5-layer CNN on {kind.size}x{kind.size} images",
    )
    return Space(name, title, find_space(FAMILY).factory, original, sample)


def arguments(kind: Kind, channels: list[int]) -> dict[str, Any]:
    return {**space_of(kind).default, "channels": channels}


def experiment(kind: Kind, channels: list[int]) -> Experiment:
    return SpaceSource(space_of(kind)).of(arguments(kind, channels))


def built(kind: Kind, channels: list[int], seed: int) -> tuple[nn.Module, Any]:
    """A network with the first weights of a seed."""
    import torch

    from ampere.models.cnn5 import build

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build(**arguments(kind, channels))


def pruned(kind: Kind, seed: int, way: Way, estimator: Estimator, device: Worker) -> Pruned:
    """The model pruned to half its energy, or to half its FLOPs, in one of the ways."""
    from ampere.pruning.checking import Check
    from ampere.pruning.price import Joules
    from ampere.pruning.pruning import Pruner, prune

    model, inputs = built(kind, CHANNELS, seed)
    check = Check(device, experiment(kind, CHANNELS), lambda found: experiment(kind, channels_of(found)), device.clock)
    if way.closed_loop:
        return prune(model, inputs, SHARE, estimator, confidence=CONFIDENCE, allocator="tuned", seed=seed, check=check)
    original = LoadedModel(model, (inputs,), FAMILY, None)
    any_will_do = _any_candidate if way.strategy == "random" else None
    pruner = Pruner(original, way.strategy, seed=seed, short_training=any_will_do, by_flops=way.by_flops)
    joules = Joules(estimator, "tuned", 0.0, pruner.network)
    whole = joules.estimate(pruner.network).joules

    def to_share(aim: float) -> Pruned:
        return pruner.pruned(joules, aim * whole, 0.5)

    return _checked(to_share, check, estimator) if way.checked else to_share(SHARE)


def _any_candidate(_: nn.Module) -> float:
    """Random candidates are not compared: energy is what this is about, and aims that change must meet the same one."""
    return 0.0


def _checked(to_share: Callable[[float], Pruned], check: Check, estimator: Estimator) -> Pruned:
    """The same check for every guide: measure, and aim as much lower or higher as the measurement was off."""
    from ampere.pruning.checking import Rounds

    rounds, aim = Rounds(check, estimator), SHARE
    found: list[tuple[float, Pruned]] = []
    for number in range(CHECKS_AT_MOST):
        try:
            candidate = to_share(aim)
        except AmpereError:
            if not found:
                raise
            break  # no widths meet a lower aim
        measured = rounds.measured(candidate, Random(f"check {number}"))
        found.append((measured.share, replace(candidate, measured=measured)))
        if (1 - NEAR) * SHARE <= measured.share <= SHARE:
            break
        aim *= (1 - NEAR / 2) * SHARE / measured.share
    inside = [each for each in found if each[0] <= SHARE]
    return max(inside, key=lambda each: each[0])[1] if inside else min(found, key=lambda each: each[0])[1]


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
    model: nn.Module, task: Dataset, iterations: int, batch: int, seed: int, report: Callable[[float], None]
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
    model: nn.Module, task: Dataset, iterations: int, batch: int, seed: int, report: Callable[[float], None]
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


def tested(model: nn.Module, images: Examples, count: int) -> tuple[float, float]:
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
