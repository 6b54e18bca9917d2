"""FLOPs of the operations that are products, from their operands; a multiply-add is two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch

aten = torch.ops.aten


def _product(a: Any, b: Any) -> int:
    return 2 * int(a.numel()) * int(b.shape[-1])


def _convolution(args: Sequence[Any], out: Any) -> int:
    x, weight, transposed = args[0], args[1], args[6]
    places = prod(x.shape[2:]) if transposed else prod(out.shape[2:])
    return 2 * int(x.shape[0]) * places * int(weight.numel())


def _convolution_backward(args: Sequence[Any], out: Any) -> int:
    grad, x, weight, transposed, mask = args[0], args[1], args[2], args[7], args[10]
    places = prod(x.shape[2:]) if transposed else prod(grad.shape[2:])
    return 2 * int(x.shape[0]) * places * int(weight.numel()) * (int(mask[0]) + int(mask[1]))


FLOPS: dict[Any, Callable[[Sequence[Any], Any], int]] = {
    aten.mm.default: lambda args, out: _product(args[0], args[1]),
    aten.bmm.default: lambda args, out: _product(args[0], args[1]),
    aten.addmm.default: lambda args, out: _product(args[1], args[2]),
    aten.baddbmm.default: lambda args, out: _product(args[1], args[2]),
    aten.addbmm.default: lambda args, out: _product(args[1], args[2]),
    aten.convolution.default: _convolution,
    aten.convolution_backward.default: _convolution_backward,
}


def flops_of(func: Any, args: Sequence[Any], out: Any) -> int:
    count = FLOPS.get(func)
    return count(args, out) if count else 0
