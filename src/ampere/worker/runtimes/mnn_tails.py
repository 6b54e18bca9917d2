"""The operations between parametric layers, as `ampere.worker.tails` planned them, in MNN."""

from typing import Any, Callable, Dict

import MNN.nn as nn

from ...network.kinds.kind import Shape
from ..tails import TailPlan
from .mnn_layers import DROPOUT
from .mnn_tensors import PADDED, UNPADDED, F, Var, across_down, as_image, constant, image, plain, shape_of

Action = Callable[..., Var]


def tail_action(plan: TailPlan, shape: Shape) -> Action:
    """On a value of that shape."""
    return ACTIONS[plan.action](plan, shape)


def _nothing(plan: TailPlan, shape: Shape) -> Action:
    """What no gradient comes from is on the way to nothing, and MNN, being lazy, would not compute it."""
    return lambda x: x


def _max_pool(plan: TailPlan, shape: Shape) -> Action:
    kernel = across_down(plan.sizes * (len(shape) - 2), 1)
    return lambda x: F.max_pool(image(x, shape), kernel, kernel, UNPADDED, [0, 0])


def _max_pool_same(plan: TailPlan, shape: Shape) -> Action:
    (kernel,), places = plan.sizes, len(shape) - 2
    window, pads = across_down((kernel,) * places, 1), across_down((kernel // 2,) * places, 0)
    return lambda x: F.max_pool(image(x, shape), window, [1, 1], PADDED, pads)


def _adaptive_pool(plan: TailPlan, shape: Shape) -> Action:
    """Windows of one size that cover everything: MNN has no others."""
    before, after = as_image(shape)[2:], as_image(plan.shape)[2:]
    stride = [n // m for n, m in zip(before, after)]
    kernel = [n - (m - 1) * s for n, m, s in zip(before, after, stride)]
    return lambda x: F.avg_pool(image(x, shape), kernel[::-1], stride[::-1], UNPADDED, [0, 0])


def _mean(plan: TailPlan, shape: Shape) -> Action:
    return lambda x: F.reduce_mean(plain(x, shape), list(plan.sizes), False)


def _last(plan: TailPlan, shape: Shape) -> Action:
    return lambda x: last_of(plain(x, shape), plan.sizes)


def last_of(x: Var, dimensions: Any) -> Var:
    """The last entry along each dimension that goes: what is taken of a sequence's outputs."""
    for dimension in reversed(dimensions):
        shape = list(shape_of(x))
        length = shape.pop(dimension)
        x = plain(F.split(x, [length - 1, 1], dimension)[1] if length > 1 else x, shape)
    return x


def part_of(x: Var, parts: int, part: int, shape: Shape) -> Var:
    return plain(F.split(plain(x, (parts, *shape)), [1] * parts, 0)[part], shape)


def _add(plan: TailPlan, shape: Shape) -> Action:
    def add(x: Var, y: Var) -> Var:
        alike = x.data_format == y.data_format and shape_of(x) == shape_of(y)
        return F.add(x, y) if alike else F.add(plain(x, shape), plain(y, shape))

    return add


def _concat(plan: TailPlan, shape: Shape) -> Action:
    partner = plan.partner or shape
    return lambda x, y: F.concat([plain(x, shape), plain(y, partner)], 1)


def _repeat(plan: TailPlan, shape: Shape) -> Action:
    across, down = across_down(plan.sizes * (len(shape) - 2), 1)
    return lambda x: F.resize(image(x, shape), float(across), float(down))


def _dropout(plan: TailPlan, shape: Shape) -> Action:
    return nn.dropout(DROPOUT).forward


ACTIONS: Dict[str, Callable[[TailPlan, Shape], Action]] = {
    "aside": _nothing,
    "draw": _nothing,
    "relu": lambda plan, shape: lambda x: F.relu(x, 0.0),
    "dropout": _dropout,
    "add": _add,
    "max_pool": _max_pool,
    "max_pool_same": _max_pool_same,
    "adaptive_pool": _adaptive_pool,
    "softmax": lambda plan, shape: lambda x: F.softmax(plain(x, shape), -1),
    "mean": _mean,
    "copy": lambda plan, shape: lambda x: F.add(x, constant([0.0])),
    "last": _last,
    "repeat": _repeat,
    "concat": _concat,
}
