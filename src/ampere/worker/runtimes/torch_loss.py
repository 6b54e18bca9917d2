"""The loss of a training step when the user names none, for real tensors and for shapes alone."""

import dataclasses
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, List

import torch
import torch.nn.functional as functional


def training_loss(output: Any) -> Any:
    """The model's own loss if it has one; cross entropy for class scores; else the mean of squares."""
    own = own_loss(output)
    if own is not None:
        return own
    tensors = differentiable(output)
    if not tensors:
        raise ValueError("no output of the model depends on a parameter that can be trained")
    if _are_scores(tensors):
        return functional.cross_entropy(tensors[0], targets(output))
    return sum((t.square().mean() for t in tensors[1:]), tensors[0].square().mean())


def own_loss(output: Any) -> Any:
    loss = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    return loss if isinstance(loss, torch.Tensor) and loss.requires_grad else None


def differentiable(output: Any) -> "List[Any]":
    """All floating tensors in an output that a gradient can start from."""
    if isinstance(output, torch.Tensor):
        return [output] if output.requires_grad and output.is_floating_point() else []
    if isinstance(output, Mapping):
        parts = list(output.values())
    elif dataclasses.is_dataclass(output) and not isinstance(output, type):
        parts = list(vars(output).values())
    else:
        parts = list(output) if isinstance(output, (list, tuple)) else []
    return [tensor for part in parts for tensor in differentiable(part)]


def targets(output: Any) -> Any:
    """The labels that `training_loss` compares class scores with: the same ones at every step."""
    tensors = differentiable(output)
    if own_loss(output) is not None or not _are_scores(tensors):
        return None
    return _labels(int(tensors[0].shape[0]), int(tensors[0].shape[1]), str(tensors[0].device))


def _are_scores(tensors: "List[Any]") -> bool:
    return len(tensors) == 1 and tensors[0].dim() == 2 and tensors[0].shape[1] > 1


@lru_cache(maxsize=64)
def _labels(rows: int, classes: int, device: str) -> Any:
    if device == "meta":
        return torch.zeros(rows, dtype=torch.long, device=device)
    # A generator of its own leaves the user's random numbers as they are.
    return torch.randint(classes, (rows,), generator=torch.Generator().manual_seed(0)).to(device)
