"""The operations between parametric layers, as `ampere.worker.tails` planned them."""

from typing import Any, Callable, Dict, List

import torch
from torch import Tensor
from torch.nn import functional as F

from ..tails import TailPlan

MAX_POOLS = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
ADAPTIVE_POOLS = {1: F.adaptive_avg_pool1d, 2: F.adaptive_avg_pool2d, 3: F.adaptive_avg_pool3d}

Action = Callable[[List[Tensor]], Tensor]


def tail_action(plan: TailPlan) -> Action:
    return ACTIONS[plan.action](plan)


def _max_pool(plan: TailPlan) -> Action:
    pool, (kernel,) = MAX_POOLS[len(plan.shape) - 2], plan.sizes
    return lambda tensors: pool(tensors[0], kernel)


def _max_pool_same(plan: TailPlan) -> Action:
    pool, (kernel,) = MAX_POOLS[len(plan.shape) - 2], plan.sizes
    return lambda tensors: pool(tensors[0], kernel, stride=1, padding=kernel // 2)


def _adaptive_pool(plan: TailPlan) -> Action:
    pool: Any = ADAPTIVE_POOLS[len(plan.shape) - 2]
    return lambda tensors: pool(tensors[0], plan.sizes)


def _mean(plan: TailPlan) -> Action:
    return lambda tensors: tensors[0].mean(dim=plan.sizes)


def _last(plan: TailPlan) -> Action:
    """The last entry along each dimension that goes: what is taken of a sequence's outputs."""

    def select(tensors: List[Tensor]) -> Tensor:
        part = tensors[0]
        for dimension in reversed(plan.sizes):
            part = part.select(dimension, -1)
        return part.contiguous()

    return select


def _repeat(plan: TailPlan) -> Action:
    factor = float(plan.sizes[0])
    return lambda tensors: F.interpolate(tensors[0], scale_factor=factor, mode="nearest")


ACTIONS: Dict[str, Callable[[TailPlan], Action]] = {
    "relu": lambda plan: lambda tensors: torch.relu(tensors[0]),
    "add": lambda plan: lambda tensors: tensors[0] + tensors[1],
    "max_pool": _max_pool,
    "max_pool_same": _max_pool_same,
    "adaptive_pool": _adaptive_pool,
    "softmax": lambda plan: lambda tensors: torch.softmax(tensors[0], -1),
    "mean": _mean,
    "copy": lambda plan: lambda tensors: tensors[0].clone(),
    "last": _last,
    "repeat": _repeat,
    "concat": lambda plan: lambda tensors: torch.cat(tensors, 1),
}
