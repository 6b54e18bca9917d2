"""What operations without parameters cost, relative to the usual one of their class.

A class of trailing operations has one price for each value, learnt on the device (`TRAILING_CLASSES`). Within a class
operations differ up to a hundred times: some have no vectorised code, or lose it where the strides of their operands
differ. Nanoseconds for each value read or written, on one core of a known processor; only their ratios count.
`docs/decisions/0062` says how they were measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd, log, prod
from typing import Any

import torch
from torch import Tensor

CLASSES = {
    "elementwise": 0.042,
    "transcendental": 0.4,
    "dropout": 1.2,
    "pool": 0.5,
    "reduce": 0.08,
    "copy": 0.05,
    "enlarge": 1.0,
}
_OPERATIONS = {
    0.042: """clone copy contiguous cat embedding tanh_backward sigmoid_backward log_sigmoid_backward
        _softmax_backward_data""",
    0.08: "max_pool2d_with_indices_backward max_pool3d_with_indices_backward index_select _log_softmax_backward_data",
    0.1: "silu silu_backward softplus_backward elu_backward glu glu_backward sigmoid mse_loss",
    0.12: "constant_pad_nd lt gt rsqrt",
    0.15: "gelu eq ne ge le scatter_add reflection_pad1d reflection_pad2d",
    0.18: "gelu_backward gather sqrt",
    0.2: "where tril triu index",
    0.3: "exp atan2 index_add",
    0.35: "masked_fill log log_sigmoid_forward",
    0.4: "elu index_put reflection_pad2d_backward upsample_nearest2d_backward",
    0.5: "sin cos erf softplus col2im pixel_shuffle pixel_unshuffle avg_pool2d_backward avg_pool3d_backward",
    0.8: "max min argmax argmin binary_cross_entropy_with_logits im2col",
    0.9: "upsample_nearest1d upsample_nearest2d upsample_nearest3d logsumexp rand_like",
    1.1: "tanh _prelu_kernel_backward mish_backward randn_like",
    1.5: "mish _safe_softmax",
    2.1: """native_dropout upsample_linear1d_backward upsample_bilinear2d_backward
        upsample_trilinear3d_backward""",
    5.6: "var std var_mean std_mean",
}
OPERATIONS = {name: each for each, names in _OPERATIONS.items() for name in names.split()}
# The usual operation of each class, for each value that its forward pass reads or writes, and in each pass.
USUAL = {
    "elementwise": 0.053,
    "transcendental": 0.19,
    "dropout": 2.1,
    "pool": 1.05,
    "reduce": 0.16,
    "copy": 0.021,
    "enlarge": 1.6,
}
LEAST, MOST = 0.1, 200.0
ALIKE = 0.16  # log of a weight, below which the usual operation is meant
SCALING = 0.4  # each value that is multiplied with a parameter, forward and backward
VECTORS = 32  # values in a row in all operands, from which on vectors are used
LOOPED, SCALAR = 0.7, 1.4  # where not: a plain loop takes a part of a copy, one with branches or a series more
SERIES = {"gelu_backward": 2.9, "elu_backward": 1.9, "mish_backward": 12.0}
BRANCHING = ("threshold_backward", "hardtanh_backward", "leaky_relu_backward", "hardswish_backward", "clamp")
# Steps from value to value that are multiples of large powers of two meet in a few places of a cache.
TRANSPOSED, MEETING = 0.2, {1024: 0.32, 2048: 0.5, 4096: 1.3}  # by the largest such power, in bytes
ROWS_TRANSPOSED = 0.1
COMPLEX, ALL_BROADCAST = 1.0, 0.27
POOL_START, POOL_PLACE, MEAN_PLACE = 6.0, 1.8, 1.3  # of one value that is written
SOFTMAX, SOFTMAX_ROW, SOFTMAX_ACROSS = 0.22, 35.0, 1.7
SHORT = 16  # values of a row that is worked through one by one
BERNOULLI, UNSURE = 1.45, 6.5  # a drawn value, and what guessing wrongly costs


def nanoseconds(name: str, group: str, args: Sequence[Any], values: int, out: Any) -> float:
    """What an operation that moves so many values takes on the known processor."""
    each = OPERATIONS.get(name, CLASSES.get(group, CLASSES["elementwise"]))
    first = args[0][0] if args and isinstance(args[0], (list, tuple)) and args[0] else args[0] if args else None
    if isinstance(first, Tensor) and first.layout == torch.strided and first.dim():
        if name in SPECIAL:
            each = SPECIAL[name](args, out) or each
        if group in ("elementwise", "transcendental"):
            each = _by_layout(name, group, each, args, out)
    return each * values


def weight(name: str, nanoseconds: float, nominal: float) -> float:
    """How many values of a class's usual operation one of these stands for."""
    usual = USUAL.get(name, 0.0) * nominal
    found = min(MOST, max(LEAST, nanoseconds / usual)) if usual and nanoseconds else 1.0
    return 1.0 if abs(log(found)) < ALIKE else float(f"{found:.2g}")


def _by_layout(name: str, group: str, each: float, args: Sequence[Any], out: Any) -> float:
    operands = [a for a in args if isinstance(a, Tensor)]
    if not isinstance(out, Tensor) or any(a.layout != torch.strided for a in (*operands, out)):
        return each
    if any(a.is_complex() for a in operands):
        return max(each, COMPLEX)
    whole = [a for a in operands if a.shape == out.shape]
    expanded = [a for a in whole if any(s == 0 and n > 1 for s, n in zip(a.stride(), a.shape, strict=True))]
    if len(expanded) == 1 < len(whole):  # one value for a whole row is no obstacle to vectors
        whole = [a for a in whole if a is not expanded[0]]
    if not whole and len(operands) > 1:
        return max(each, ALL_BROADCAST)
    if _run([*whole, out]) >= min(VECTORS, out.numel()):
        return each
    if name in BRANCHING or group == "transcendental":
        return max(each, SERIES.get(name, SCALAR))
    return max(each, LOOPED * max(_apart(a, out) for a in whole))


def _run(tensors: Sequence[Tensor]) -> int:
    """How many values lie one after another in all of these tensors of one shape."""
    run, last = 1, tensors[-1]
    for dim in sorted(range(last.dim()), key=lambda d: (last.stride()[d], last.shape[d])):
        if last.shape[dim] > 1:
            if any(t.stride()[dim] != run for t in tensors):
                break
            run *= last.shape[dim]
    return run


def _copied(args: Sequence[Any], out: Any) -> float | None:
    """Of a clone or a copy, by whether values stay in order."""
    source = args[1] if len(args) > 1 and isinstance(args[1], Tensor) else args[0]
    if source.layout != torch.strided or source.shape != out.shape:
        return None
    run = _run([source, out])
    return None if run >= min(VECTORS, out.numel()) else (_apart(source, out) if run == 1 else ROWS_TRANSPOSED)


def _apart(source: Tensor, out: Tensor) -> float:
    """Of a value that is read far from the one before, where the result is written one after another."""
    dims = [d for d in range(out.dim()) if out.shape[d] > 1]
    gap = source.stride()[min(dims, key=lambda d: out.stride()[d])] * source.element_size() if dims else 0
    return MEETING.get(gcd(gap, max(MEETING)), TRANSPOSED) if gap else TRANSPOSED


def _stacked(args: Sequence[Any], out: Any) -> float | None:
    return 0.6 if len(args) > 1 and args[1] in (-1, out.dim() - 1) else 0.06


def _summed(args: Sequence[Any], out: Any) -> float | None:
    """Short rows are added up one value after another."""
    source, dims = args[0], args[1] if len(args) > 1 and isinstance(args[1], (list, tuple)) else ()
    along_rows = len(dims) == 1 and dims[0] % source.dim() == source.dim() - 1
    return 0.35 if along_rows and source.shape[-1] < SHORT else None


def _power(args: Sequence[Any], out: Any) -> float | None:
    exponent = args[1] if len(args) > 1 else None
    return None if isinstance(exponent, (int, float)) and exponent in (1, 2, 3, -1, -2, 0.5, -0.5) else 0.79


def _softmax(args: Sequence[Any], out: Any) -> float | None:
    """Along short rows, or along another dimension than the last."""
    source, dim = args[0], args[1] % args[0].dim()
    if dim == source.dim() - 1:
        return max(SOFTMAX, SOFTMAX_ROW / (2 * max(1, source.shape[-1])))
    return 0.3 if prod(source.shape[dim + 1 :]) >= SHORT else SOFTMAX_ACROSS


def _softmax_backward(args: Sequence[Any], out: Any) -> float | None:
    dim = args[2] % out.dim()
    if dim == out.dim() - 1:
        return None
    return 0.1 if prod(out.shape[dim + 1 :]) >= SHORT else SOFTMAX_ACROSS / 3


def _norm(args: Sequence[Any], out: Any) -> float | None:
    dims = [d % args[0].dim() for d in args[2]] if len(args) > 2 and args[2] else []
    return 1.1 if dims and args[0].dim() - 1 not in dims else 0.1


def _drawn(args: Sequence[Any], out: Any) -> float | None:
    share = args[1] if len(args) > 1 and isinstance(args[1], (int, float)) else 0.5
    return BERNOULLI + UNSURE * min(share, 1 - share)


def _window(args: Sequence[Any]) -> int:
    kernel = args[1] if isinstance(args[1], (list, tuple)) else [args[1]]
    return int(prod(kernel)) ** (args[0].dim() - 2 if len(kernel) == 1 else 1)


def _max_pool(args: Sequence[Any], out: Any) -> float | None:
    written = out[0].numel() if isinstance(out, (list, tuple)) else out.numel()
    return (POOL_START + POOL_PLACE * _window(args)) * written / max(1, args[0].numel() + 2 * written)


def _mean_pool(args: Sequence[Any], out: Any) -> float | None:
    return MEAN_PLACE * _window(args) * out.numel() / max(1, args[0].numel() + out.numel())


SPECIAL: dict[str, Callable[[Sequence[Any], Any], float | None]] = {
    "pow": _power,
    "clone": _copied,
    "copy": _copied,
    "bernoulli": _drawn,
    "dropout": _drawn,
    "native_dropout": _drawn,
    "max_pool2d_with_indices": _max_pool,
    "max_pool3d_with_indices": _max_pool,
    "avg_pool1d": _mean_pool,
    "avg_pool2d": _mean_pool,
    "avg_pool3d": _mean_pool,
    "_softmax": _softmax,
    "_log_softmax": _softmax,
    "_softmax_backward_data": _softmax_backward,
    "_log_softmax_backward_data": _softmax_backward,
    "stack": _stacked,
    "sum": _summed,
    "mean": _summed,
    "linalg_vector_norm": _norm,
}
