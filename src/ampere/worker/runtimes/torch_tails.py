"""The operations between parametric layers, as `ampere.worker.tails` planned them."""

from typing import Any, Callable, Dict

import torch
from torch import Tensor
from torch.nn import functional as F

from ..tails import TailPlan

MAX_POOLS = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
ADAPTIVE_POOLS = {1: F.adaptive_avg_pool1d, 2: F.adaptive_avg_pool2d, 3: F.adaptive_avg_pool3d}
DROPOUT = 0.1  # the usual share; drawing halves would cost twice as much

Action = Callable[..., Tensor]


def tail_action(plan: TailPlan) -> Action:
    return ACTIONS[plan.action](plan)


def _max_pool(plan: TailPlan) -> Action:
    pool, (kernel,) = MAX_POOLS[len(plan.shape) - 2], plan.sizes
    return lambda x: pool(x, kernel)


def _max_pool_same(plan: TailPlan) -> Action:
    pool, (kernel,) = MAX_POOLS[len(plan.shape) - 2], plan.sizes
    return lambda x: pool(x, kernel, stride=1, padding=kernel // 2)


def _adaptive_pool(plan: TailPlan) -> Action:
    pool: Any = ADAPTIVE_POOLS[len(plan.shape) - 2]
    return lambda x: pool(x, plan.sizes)


def _mean(plan: TailPlan) -> Action:
    return lambda x: x.mean(dim=plan.sizes)


def _last(plan: TailPlan) -> Action:
    """The last entry along each dimension that goes: what is taken of a sequence's outputs."""

    def select(x: Tensor) -> Tensor:
        for dimension in reversed(plan.sizes):
            x = x.select(dimension, -1)
        return x.contiguous()

    return select


def _draw_mask(x: Tensor) -> Tensor:
    torch.empty_like(x.detach()).bernoulli_(1 - DROPOUT)
    return x


def _aside(x: Tensor) -> Tensor:
    torch.relu(x.detach())
    return x


def _repeat(plan: TailPlan) -> Action:
    factor = float(plan.sizes[0])
    return lambda x: F.interpolate(x, scale_factor=factor, mode="nearest")


ACTIONS: Dict[str, Callable[[TailPlan], Action]] = {
    "aside": lambda plan: _aside,
    "relu": lambda plan: lambda x: torch.relu(x),
    "draw": lambda plan: _draw_mask,
    "dropout": lambda plan: lambda x: F.dropout(x, DROPOUT),
    "add": lambda plan: lambda x, y: x + y,
    "max_pool": _max_pool,
    "max_pool_same": _max_pool_same,
    "adaptive_pool": _adaptive_pool,
    "softmax": lambda plan: lambda x: torch.softmax(x, -1),
    "mean": _mean,
    "copy": lambda plan: lambda x: x.clone(),
    "last": _last,
    "repeat": _repeat,
    "concat": lambda plan: lambda x, y: torch.cat((x, y), 1),
}
