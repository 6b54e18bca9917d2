"""Training for real, and what the test says on the way."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ampere.core.errors import ModelError

from .images import Images, Task

if TYPE_CHECKING:
    from torch import nn

RATE = 0.1
LOOKS, LOOKED_AT = 20, 200  # tests on the way, and of how many images; the last one is of all
AT_ONCE = 250


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
