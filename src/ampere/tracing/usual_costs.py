"""What operations without parameters cost, relative to the usual one of their class.

A class of trailing operations has one price for each value, learnt on the device (`TRAILING_CLASSES`). Within a class
operations differ up to a hundred times: some have no vectorised code, or lose it where the strides of their operands
differ. Nanoseconds for each value read or written, on one core of a known processor; only their ratios count.
`docs/decisions/0062` says how they were measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, prod
from typing import Any

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
OPERATIONS = {
    **{"_prelu_kernel_backward": 1.15, "masked_fill": 0.35, "where": 0.2, "sqrt": 0.17, "rsqrt": 0.12, "tril": 0.2},
    **{"triu": 0.2, "eq": 0.15, "ne": 0.15, "lt": 0.12, "gt": 0.12, "ge": 0.15, "le": 0.15},
    **{"exp": 0.3, "log": 0.37, "sin": 0.5, "cos": 0.54, "erf": 0.5, "tanh": 1.0, "tanh_backward": 0.04},
    **{"sigmoid": 0.11, "sigmoid_backward": 0.04, "gelu": 0.15, "gelu_backward": 0.19, "silu": 0.1},
    **{"silu_backward": 0.09, "softplus": 0.5, "softplus_backward": 0.09, "elu": 0.4, "elu_backward": 0.1},
    **{"mish": 1.5, "mish_backward": 1.1, "log_sigmoid_forward": 0.34, "log_sigmoid_backward": 0.04},
    **{"glu": 0.09, "glu_backward": 0.1, "atan2": 0.3},
    **{"rand_like": 0.95, "randn_like": 1.2, "native_dropout": 2.2},
    **{"max_pool2d_with_indices_backward": 0.08, "max_pool3d_with_indices_backward": 0.08},
    **{"avg_pool2d_backward": 0.55, "avg_pool3d_backward": 0.55, "upsample_nearest2d_backward": 0.4},
    **{"upsample_nearest1d": 0.9, "upsample_nearest2d": 0.9, "upsample_nearest3d": 0.9},
    **{"upsample_bilinear2d_backward": 2.1, "upsample_trilinear3d_backward": 2.1, "upsample_linear1d_backward": 2.1},
    **{"_softmax_backward_data": 0.045, "_log_softmax_backward_data": 0.08},
    **{"_safe_softmax": 1.4, "max": 0.8, "min": 0.8, "argmax": 0.8, "argmin": 0.8, "var": 5.6, "std": 5.6},
    **{"var_mean": 5.6, "std_mean": 5.6, "logsumexp": 0.9, "binary_cross_entropy_with_logits": 0.67, "mse_loss": 0.09},
    **{"clone": 0.042, "copy": 0.042, "contiguous": 0.042, "cat": 0.044, "embedding": 0.04},
    **{"gather": 0.17, "index": 0.2, "index_put": 0.4, "index_add": 0.25, "index_select": 0.08, "scatter_add": 0.14},
    **{"im2col": 0.83, "col2im": 0.5, "pixel_shuffle": 0.57, "pixel_unshuffle": 0.45, "constant_pad_nd": 0.12},
    **{"reflection_pad1d": 0.14, "reflection_pad2d": 0.14, "reflection_pad2d_backward": 0.4},
}
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
LOOPED, SCALAR = 0.15, 1.4  # where not: a plain loop, and one with branches or a series
BRANCHING = ("threshold_backward", "hardtanh_backward", "leaky_relu_backward", "hardswish_backward", "clamp")
TRANSPOSED, ROWS_TRANSPOSED = 0.16, 0.1
COMPLEX = 1.0
ALL_BROADCAST = 0.27
POOL_START, POOL_PLACE, MEAN_PLACE = 6.0, 1.8, 1.3  # of one value that is written
SOFTMAX_ACROSS, ROW, VECTOR = 1.7, 35.0, 16
BERNOULLI, UNSURE = 1.45, 6.5  # a drawn value, and what guessing wrongly costs


def nanoseconds(name: str, group: str, args: Sequence[Any], values: int, out: Any) -> float:
    """What an operation that moves so many values takes on the known processor."""
    special = SPECIAL.get(name)
    each = special(args, out) if special is not None else None
    if each is None:
        each = OPERATIONS.get(name, CLASSES.get(group, CLASSES["elementwise"]))
    if group in ("elementwise", "transcendental"):
        each = _by_layout(name, group, each, args, out)
    return each * values


def weight(name: str, nanoseconds: float, nominal: float) -> float:
    """How many values of a class's usual operation one of these stands for."""
    usual = USUAL.get(name, 0.0) * nominal
    found = min(MOST, max(LEAST, nanoseconds / usual)) if usual and nanoseconds else 1.0
    return 1.0 if abs(log(found)) < ALIKE else float(f"{found:.2g}")


def _by_layout(name: str, group: str, each: float, args: Sequence[Any], out: Any) -> float:
    if not isinstance(out, Tensor) or out.dim() < 2:
        return each
    operands = [a for a in args if isinstance(a, Tensor)]
    if any(a.is_complex() for a in operands):
        return max(each, COMPLEX)
    whole = [a for a in operands if a.shape == out.shape]
    if not whole and len(operands) > 1:
        return max(each, ALL_BROADCAST)
    if _run([*whole, out]) >= min(VECTORS, out.numel()):
        return each
    return max(each, SCALAR if name in BRANCHING or group == "transcendental" else LOOPED)


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
    if not isinstance(source, Tensor) or not isinstance(out, Tensor) or source.shape != out.shape:
        return None
    run = _run([source, out])
    return None if run >= min(VECTORS, out.numel()) else (TRANSPOSED if run == 1 else ROWS_TRANSPOSED)


def _stacked(args: Sequence[Any], out: Any) -> float | None:
    return 0.6 if len(args) > 1 and args[1] in (-1, out.dim() - 1) else 0.06


def _summed(args: Sequence[Any], out: Any) -> float | None:
    """Short rows are added up one value after another."""
    dims = args[1] if len(args) > 1 and isinstance(args[1], (list, tuple)) else ()
    source = args[0]
    rows = [d for d in dims if d % source.dim() == source.dim() - 1]
    return 0.35 if rows and len(dims) == 1 and source.shape[-1] < VECTOR else None


def _power(args: Sequence[Any], out: Any) -> float | None:
    return 0.04 if isinstance(args[1], (int, float)) and args[1] in (1, 2, 3, -1, -2, 0.5, -0.5) else 0.79


def _softmax(args: Sequence[Any], out: Any) -> float | None:
    """Along a dimension that is not the last, or along short rows."""
    source = args[0]
    dim = next((a for a in args if isinstance(a, int) and not isinstance(a, bool)), -1) % max(1, source.dim())
    if dim == source.dim() - 1:
        return max(0.22, ROW / (2 * max(1, source.shape[-1])))
    return 0.3 if prod(source.shape[dim + 1 :]) >= VECTOR else SOFTMAX_ACROSS


def _softmax_backward(args: Sequence[Any], out: Any) -> float | None:
    dim = args[2] % max(1, out.dim())
    if dim == out.dim() - 1:
        return None
    return 0.1 if prod(out.shape[dim + 1 :]) >= VECTOR else SOFTMAX_ACROSS / 3


def _norm(args: Sequence[Any], out: Any) -> float | None:
    across = len(args) > 2 and args[2] and args[0].dim() - 1 not in [d % args[0].dim() for d in args[2]]
    return 1.1 if across else 0.09


def _bernoulli(args: Sequence[Any], out: Any) -> float | None:
    share = args[1] if len(args) > 1 and isinstance(args[1], (int, float)) else 0.5
    return BERNOULLI + UNSURE * min(share, 1 - share)


def _drawn(args: Sequence[Any], out: Any) -> float | None:
    return BERNOULLI + UNSURE * min(args[1], 1 - args[1]) if len(args) > 1 and isinstance(args[1], float) else None


def _window(args: Sequence[Any]) -> int:
    dims = args[0].dim() - 2
    kernel = args[1] if isinstance(args[1], (list, tuple)) else [args[1]]
    return int(prod(kernel)) ** (dims if len(kernel) == 1 else 1)


def _max_pool(args: Sequence[Any], out: Any) -> float | None:
    written = out[0].numel() if isinstance(out, (list, tuple)) else out.numel()
    return (POOL_START + POOL_PLACE * _window(args)) * written / (args[0].numel() + 2 * written)


def _mean_pool(args: Sequence[Any], out: Any) -> float | None:
    return MEAN_PLACE * _window(args) * out.numel() / (args[0].numel() + out.numel())


SPECIAL = {
    "pow": _power,
    "clone": _copied,
    "copy": _copied,
    "contiguous": _copied,
    "bernoulli": _bernoulli,
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
