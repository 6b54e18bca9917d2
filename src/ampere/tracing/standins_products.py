"""Stand-ins for convolutions and matrix products; see `standins`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def _convolution(args: Sequence[Any]) -> Any:
    x, weight, _, stride, padding, dilation, transposed, _, groups = args[:9]
    plain = x.dim() == weight.dim() == len(stride) + 2 == len(padding) + 2 == len(dilation) + 2
    if transposed or not plain or x.shape[1] != weight.shape[1] * groups or not _contiguous(x, weight):
        return None
    sizes = zip(x.shape[2:], weight.shape[2:], stride, padding, dilation, strict=True)
    size_out = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in sizes]
    return x.new_empty((x.shape[0], weight.shape[0], *size_out)) if min(size_out) > 0 else None


def _convolution_backward(args: Sequence[Any]) -> Any:
    grad, x, weight, bias_sizes, mask = args[0], args[1], args[2], args[3], args[10]
    if not _contiguous(grad, x, weight):
        return None
    shapes = (x.shape, weight.shape, bias_sizes)
    return tuple(grad.new_empty(shape) if asked else None for shape, asked in zip(shapes, mask, strict=True))


def _contiguous(*tensors: Tensor) -> bool:
    return all(t.is_contiguous() for t in tensors)


def _product(args: Sequence[Any]) -> Any:
    a, b = args[0], args[1]
    return a.new_empty((a.shape[0], b.shape[1])) if _fit(a, b) and a.dim() == 2 else None


def _added_product(args: Sequence[Any]) -> Any:
    bias, a, b = args[0], args[1], args[2]
    return a.new_empty((a.shape[0], b.shape[1])) if _fit(a, b) and bias.shape == b.shape[1:] else None


def _batched_product(args: Sequence[Any]) -> Any:
    a, b = args[0], args[1]
    fits = a.dim() == b.dim() == 3 and a.shape[0] == b.shape[0] and a.shape[2] == b.shape[1] and a.dtype == b.dtype
    return a.new_empty((a.shape[0], a.shape[1], b.shape[2])) if fits else None


def _fit(a: Tensor, b: Tensor) -> bool:
    return a.dim() == b.dim() == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype and a.is_meta and b.is_meta


PRODUCTS: dict[Any, Callable[[Sequence[Any]], Any]] = {
    aten.convolution.default: _convolution,
    aten.convolution_backward.default: _convolution_backward,
    aten.mm.default: _product,
    aten.addmm.default: _added_product,
    aten.bmm.default: _batched_product,
}
