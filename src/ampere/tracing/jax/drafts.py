"""Equations that begin a layer: what kind it is, and at which channels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any

from .equations import Equation, Value


@dataclass
class Draft:
    """A layer before all of its equations were seen."""

    kind: str
    config: dict[str, Any]
    channels_in: int
    channels_out: int
    input_grad: bool
    owners: set[str] = field(default_factory=set)  # its parameters


def draft_of(equation: Equation) -> Draft | None:
    found = RECOGNISERS.get(equation.name)
    return found(equation) if found else _scale(equation)


def _convolution(equation: Equation) -> Draft | None:
    x, kernel = equation.inputs[:2]
    p, numbers = equation.parameters, equation.parameters["dimension_numbers"]
    if not kernel.owners or p["batch_group_count"] != 1:
        return None
    of_x, of_kernel = numbers.lhs_spec, numbers.rhs_spec
    channels_in, channels_out = x.shape[of_x[1]], kernel.shape[of_kernel[0]]
    groups = int(p["feature_group_count"])
    transposed = any(d != 1 for d in p["lhs_dilation"])
    config: dict[str, Any] = {
        "batch": x.shape[of_x[0]],
        "size_in": tuple(x.shape[i] for i in of_x[2:]),
        "kernel": tuple(kernel.shape[i] for i in of_kernel[2:]),
        "stride": tuple(map(int, p["window_strides"])),
        "padding": tuple(_padding(*map(int, sizes)) for sizes in _windows(equation)),
        "dilation": tuple(map(int, p["rhs_dilation"])),
        "groups": 0 if groups > 1 and groups == channels_in else groups,
        "bias": False,
    }
    if transposed:
        config.update(_enlarging(equation))
    kind = "conv_transposed" if transposed else "conv" if groups == 1 else "conv_grouped"
    return Draft(kind, config, channels_in, channels_out, x.grad, set(kernel.owners))


def _enlarging(equation: Equation) -> dict[str, Any]:
    """A transposed convolution's sizes in PyTorch's words: its stride is how far JAX pulls the input apart."""
    stride, padding, more = [], [], []
    for place, (_, _, size, reach, _, result) in enumerate(_windows(equation)):
        pulled = int(equation.parameters["lhs_dilation"][place])
        cut = (size - 1) * pulled + reach + 1 - result  # what padding takes away, less what is added at the end
        stride.append(pulled)
        padding.append((cut + 1) // 2)
        more.append(cut % 2)
    return {"stride": tuple(stride), "padding": tuple(padding), "output_padding": tuple(more)}


def _windows(equation: Equation) -> Iterator[tuple[int, int, int, int, int, int]]:
    """Before, after, size, reach, stride and result along each dimension of an image."""
    (x, kernel), p, out = equation.inputs[:2], equation.parameters, equation.outputs[0]
    numbers = p["dimension_numbers"]
    for place, (before, after) in enumerate(p["padding"]):
        reach = p["rhs_dilation"][place] * (kernel.shape[numbers.rhs_spec[2 + place]] - 1)
        size, result = x.shape[numbers.lhs_spec[2 + place]], out.shape[numbers.out_spec[2 + place]]
        yield before, after, size, reach, p["window_strides"][place], result


def _padding(before: int, after: int, size: int, reach: int, stride: int, result: int) -> int:
    """The same on both sides, so that as much comes out: with a stride, SAME pads one side by one more."""
    narrow, wide = (before + after) // 2, (before + after + 1) // 2
    return wide if (size + 2 * wide - reach - 1) // stride + 1 == result else narrow


def _product(equation: Equation) -> Draft:
    left, right = equation.inputs
    (in_left, _), (batch_left, batch_right) = equation.parameters["dimension_numbers"]
    inner = prod(left.shape[i] for i in in_left)
    batch = prod(left.shape[i] for i in batch_left)
    rows = left.size // max(1, inner * batch)
    last = right.size // max(1, inner * batch)
    if right.owners and not batch_right:
        return Draft("linear", {"lead": (rows,), "bias": False}, inner, last, left.grad, set(right.owners))
    if left.owners and not batch_left:
        return Draft("linear", {"lead": (last,), "bias": False}, inner, rows, right.grad, set(left.owners))
    config: dict[str, Any] = {"batch": batch, "rows": rows}
    if left.grad != right.grad:
        config["gradients"] = 1
    return Draft("matmul", config, inner, last, left.grad or right.grad, set(equation.owners))


def _lookup(equation: Equation) -> Draft | None:
    table, out = equation.inputs[0], equation.outputs[0]
    if not table.owners or len(table.shape) != 2 or not out.shape or out.shape[-1] != table.shape[1]:
        return None
    return Draft("embedding", {"lead": out.shape[:-1]}, *table.shape, False, set(table.owners))


def _scale(equation: Equation) -> Draft | None:
    """A product or sum of data with a parameter."""
    if equation.op_class != "elementwise" or not equation.owners:
        return None
    data: list[Value] = [value for value in equation.inputs if value.owners is None and value.shape]
    if not data:
        return None
    width = max(value.size for value in equation.inputs if value.owners)
    values = equation.outputs[0].size
    width = width if width <= values else values
    return Draft("scale", {"values": values}, width, width, any(v.grad for v in data), set(equation.owners))


RECOGNISERS: dict[str, Callable[[Equation], Draft | None]] = {
    "conv_general_dilated": _convolution,
    "dot_general": _product,
    "gather": _lookup,
    "take": _lookup,
}
