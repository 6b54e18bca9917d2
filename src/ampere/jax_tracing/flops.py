"""FLOPs of an equation, from its operands; a multiply-add is two. Zeros that a stride puts in are not multiplied."""

from __future__ import annotations

from math import prod
from typing import Any


def flops_of(equation: Any) -> int:
    """With those of the equations inside it."""
    name = equation.primitive.name
    if name == "dot_general":
        return _dot(equation)
    if name == "conv_general_dilated":
        return _convolution(equation)
    inside = sum(flops_of(inner) for body in bodies(equation) for inner in body.eqns)
    return inside * int(equation.params.get("length", 1) if name == "scan" else 1)


def bodies(equation: Any) -> list[Any]:
    """The jaxprs inside an equation; of the branches of a condition the dearest is not known, so all are."""
    found: list[Any] = []
    for value in equation.params.values():
        for one in value if isinstance(value, (tuple, list)) else (value,):
            jaxpr = getattr(one, "jaxpr", one)
            if hasattr(jaxpr, "eqns"):
                found.append(jaxpr)
    return found


def _dot(equation: Any) -> int:
    (contracted, _), _ = equation.params["dimension_numbers"]
    left = equation.invars[0].aval.shape
    return 2 * prod(equation.outvars[0].aval.shape) * prod(left[i] for i in contracted)


def _convolution(equation: Any) -> int:
    numbers, (x, kernel) = equation.params["dimension_numbers"], (v.aval.shape for v in equation.invars)
    if any(d != 1 for d in equation.params["lhs_dilation"]):  # each value that is there meets the kernel once
        places = prod(kernel[i] for i in numbers.rhs_spec[2:])
        return int(2 * prod(x) * places * kernel[numbers.rhs_spec[0]] // equation.params["feature_group_count"])
    window = prod(kernel[i] for i in numbers.rhs_spec[1:])  # channels of a group, then places
    return int(2 * prod(equation.outvars[0].aval.shape) * window)
