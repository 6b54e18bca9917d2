"""Results of the right shape, without computing them.

Many operations on meta tensors run through Python reference code: it takes a hundred times longer than making an
empty tensor, and its first use imports a compiler. The commonest have a stand-in here. None means: run the real one,
which also says what is wrong with the operands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten
StandIn = Callable[[Sequence[Any]], Any]


def _convolution(args: Sequence[Any]) -> Any:
    x, weight, _, stride, padding, dilation, transposed, _, groups = args[:9]
    plain = x.dim() == weight.dim() == len(stride) + 2 == len(padding) + 2 == len(dilation) + 2
    last = _channels_last(x, weight)
    if transposed or not plain or x.shape[1] != weight.shape[1] * groups or not (last or _contiguous(x, weight)):
        return None
    sizes = zip(x.shape[2:], weight.shape[2:], stride, padding, dilation, strict=True)
    size_out = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in sizes]
    return _image(x, (x.shape[0], weight.shape[0], *size_out), last) if min(size_out) > 0 else None


def _convolution_backward(args: Sequence[Any]) -> Any:
    grad, x, weight, bias_sizes, mask = args[0], args[1], args[2], args[3], args[10]
    last = _channels_last(x, weight)
    if not last and not _contiguous(grad, x, weight):
        return None
    shapes = ((x.shape, last), (weight.shape, last), (bias_sizes, False))
    return tuple(_image(grad, *shape) if asked else None for shape, asked in zip(shapes, mask, strict=True))


def _channels_last(x: Tensor, weight: Tensor) -> bool:
    """Whether a convolution of images works with channels last, which on meta tensors it never does."""
    return x.dim() == 4 and any(
        t.is_contiguous(memory_format=torch.channels_last) and not t.is_contiguous() for t in (x, weight)
    )


def _image(model: Tensor, shape: Sequence[int], channels_last: bool) -> Tensor:
    made = _empty(model, shape)
    return made.to(memory_format=torch.channels_last) if channels_last else made


def _contiguous(*tensors: Tensor) -> bool:
    return all(t.is_contiguous() for t in tensors)


def _product(args: Sequence[Any]) -> Any:
    a, b = args[0], args[1]
    return _empty(a, (a.shape[0], b.shape[1])) if _fit(a, b) and a.dim() == 2 else None


def _added_product(args: Sequence[Any]) -> Any:
    bias, a, b = args[0], args[1], args[2]
    return _empty(a, (a.shape[0], b.shape[1])) if _fit(a, b) and bias.shape == b.shape[1:] else None


def _batched_product(args: Sequence[Any]) -> Any:
    a, b = args[0], args[1]
    fits = a.dim() == b.dim() == 3 and a.shape[0] == b.shape[0] and a.shape[2] == b.shape[1] and a.dtype == b.dtype
    return _empty(a, (a.shape[0], a.shape[1], b.shape[2])) if fits else None


def _fit(a: Tensor, b: Tensor) -> bool:
    return a.dim() == b.dim() == 2 and a.shape[1] == b.shape[0] and a.dtype == b.dtype and a.is_meta and b.is_meta


PRODUCTS: dict[Any, Callable[[Sequence[Any]], Any]] = {
    aten.convolution.default: _convolution,
    aten.convolution_backward.default: _convolution_backward,
    aten.mm.default: _product,
    aten.addmm.default: _added_product,
    aten.bmm.default: _batched_product,
}


def _empty(model: Tensor, shape: Sequence[int]) -> Tensor:
    """As `model.new_empty(shape)`, which on meta tensors is reference code too."""
    return torch.empty(shape, dtype=model.dtype, device="meta")


def like(tensor: Tensor) -> Tensor:
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")


def _like_first(args: Sequence[Any]) -> Any:
    return like(args[0])


def _like_real(args: Sequence[Any]) -> Any:
    """Roots and logarithms of whole numbers are of another type."""
    return like(args[0]) if args[0].is_floating_point() else None


def _like_both(args: Sequence[Any]) -> Any:
    a, b = args[0], args[1]
    if isinstance(a, Tensor) and isinstance(b, Tensor) and a.shape == b.shape and a.dtype == b.dtype:
        return like(a) if a.stride() == b.stride() and _is_dense(a) else _in_order_of(a, b)
    return like(a) if isinstance(b, (int, float)) else None


def _arithmetic(args: Sequence[Any]) -> Any:
    """The first operand's order of dimensions decides, where it has one."""
    a, b = args[0], args[1]
    if not isinstance(b, Tensor) or not b.is_meta or a.dtype != b.dtype:
        return _like_both(args)
    if a.is_contiguous() and (a.shape == b.shape or (b.is_contiguous() and _is_repeated(b, a))):
        return _empty(a, a.shape)
    return _like_both(args) if a.shape == b.shape else _in_order_of(a, b)


def _in_order_of(a: Tensor, b: Tensor) -> Any:
    """Of two operands that are repeated to the larger one's shape; None where it is not plain how the result lies."""
    large, small = (a, b) if a.dim() > b.dim() or _is_repeated(b, a) else (b, a)
    if not _is_repeated(small, large):
        return None
    if _is_in_rows(a, large.shape) and _is_in_rows(b, large.shape):
        return _empty(large, large.shape)
    strides = a.stride()
    if large is not a or 0 in strides or len(set(strides)) < len(strides):
        return None
    order = sorted(range(a.dim()), key=lambda dimension: strides[dimension])
    return torch.empty_permuted(a.shape, order[::-1], dtype=a.dtype, device="meta")


def _is_in_rows(tensor: Tensor, shape: Sequence[int]) -> bool:
    """Whether its dimensions lie in the usual order, those aside along which it is repeated to this shape."""
    wide = shape[len(shape) - tensor.dim() :]
    strides = [s for s, n, wanted in zip(tensor.stride(), tensor.shape, wide, strict=True) if s and n == wanted]
    return all(outer > inner for outer, inner in pairwise(strides))


def _with_number(args: Sequence[Any]) -> Any:
    x = args[0]
    if not isinstance(args[1], (int, float)):
        return None
    return like(x) if _is_dense(x) else _empty(x, x.shape) if _is_in_rows(x, x.shape) else None


def _changed(args: Sequence[Any]) -> Any:
    return None if 0 in args[0].stride() else args[0]


def _is_repeated(small: Tensor, large: Tensor) -> bool:
    sizes = zip(reversed(small.shape), reversed(large.shape), strict=False)
    return small.dim() <= large.dim() and all(n in (1, wanted) for n, wanted in sizes)


def _batch_norm(args: Sequence[Any]) -> Any:
    x, weight, training = args[0], args[1], args[5]
    if weight is not None and weight.shape != x.shape[1:2]:
        return None
    statistics = x.shape[1] if training else 0
    return like(x), _empty(x, (statistics,)), _empty(x, (statistics,))


def _batch_norm_backward(args: Sequence[Any]) -> Any:
    grad, x, weight, mask = args[0], args[1], args[2], args[-1]
    parameter = weight if weight is not None else _empty(x, x.shape[1:2])
    return _asked((grad, parameter, parameter), mask)


def _layer_norm(args: Sequence[Any]) -> Any:
    x, shape = args[0], args[1]
    if tuple(x.shape[x.dim() - len(shape) :]) != tuple(shape) or not x.is_contiguous():
        return None
    statistics = _empty(x, (*x.shape[: x.dim() - len(shape)], *(1 for _ in shape)))
    return like(x), statistics, like(statistics)


def _layer_norm_backward(args: Sequence[Any]) -> Any:
    grad, weight, bias, mask = args[0], args[5], args[6], args[7]
    return _asked((grad, weight, bias), mask) if grad.is_contiguous() else None


def _group_norm(args: Sequence[Any]) -> Any:
    x, weight, batch, channels, groups = args[0], args[1], args[3], args[4], args[6]
    fits = tuple(x.shape[:2]) == (batch, channels) and channels % groups == 0 and x.is_contiguous()
    if not fits or (weight is not None and weight.shape != x.shape[1:2]):
        return None
    return like(x), _empty(x, (batch, groups)), _empty(x, (batch, groups))


def _group_norm_backward(args: Sequence[Any]) -> Any:
    grad, x, weight, mask = args[0], args[1], args[4], args[9]
    parameter = weight if weight is not None else _empty(x, x.shape[1:2])
    return _asked((x, parameter, parameter), mask) if _contiguous(grad, x) else None


def _concatenated(args: Sequence[Any]) -> Any:
    parts, along = args[0], (args[1] if len(args) > 1 else 0)
    shapes = [list(part.shape) for part in parts]
    if not _contiguous(*parts) or len({part.dtype for part in parts}) > 1 or not shapes[0]:
        return None
    along %= len(shapes[0])
    size = sum(shape.pop(along) for shape in shapes if len(shape) > along)
    if any(shape != shapes[0] for shape in shapes):
        return None
    return _empty(parts[0], (*shapes[0][:along], size, *shapes[0][along:]))


def _upsampled(args: Sequence[Any]) -> Any:
    x, size = args[0], args[1]
    return _empty(x, (*x.shape[:2], *size)) if x.dim() == 4 and x.is_contiguous() and min(size) > 0 else None


def _asked(likes: Sequence[Any], mask: Sequence[bool]) -> tuple[Any, ...]:
    wanted = zip(likes, mask, strict=True)
    return tuple(like(model) if asked and model is not None else None for model, asked in wanted)


def _class_loss(args: Sequence[Any]) -> Any:
    scores, labels, reduction = args[0], args[1], args[3]
    if scores.dim() != 2 or labels.shape != scores.shape[:1] or not reduction:
        return None
    return _empty(scores, ()), _empty(scores, ())


def _mean(args: Sequence[Any]) -> Any:
    x, over, keep = args[0], {d % args[0].dim() for d in args[1] or ()}, len(args) > 2 and args[2]
    shape = [1 if d in over else n for d, n in enumerate(x.shape) if keep or d not in over]
    return _empty(x, shape) if over else None


def _whole_mean(args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    return None if options else _empty(args[0], ())


def _sum(args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    return _mean(args) if args[0].is_contiguous() and not options else None


def _empty_like(args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    return like(args[0]) if _is_dense(args[0]) and options in ({}, {"memory_format": torch.preserve_format}) else None


def _clone(args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    if options == {"memory_format": torch.contiguous_format}:
        return _empty(args[0], args[0].shape)
    return _empty_like(args, options)


def _is_dense(tensor: Tensor) -> bool:
    """Whether its values lie one after another, in whichever order of the dimensions."""
    expected = 1
    for stride, size in sorted((stride, n) for stride, n in zip(tensor.stride(), tensor.shape, strict=True) if n != 1):
        if stride != expected:
            return False
        expected *= size
    return True


_POINTWISE = (aten.relu, aten.gelu, aten.silu, aten.sigmoid, aten.tanh, aten._log_softmax, aten._softmax)
_OF_REAL_NUMBERS = (aten.sin, aten.cos, aten.exp, aten.log, aten.sqrt, aten.rsqrt, aten.neg, aten.erf, aten.log1p)
_BACKWARD = (
    *(aten.threshold_backward, aten.sigmoid_backward, aten.tanh_backward, aten.gelu_backward, aten.silu_backward),
    *(aten._log_softmax_backward_data, aten._softmax_backward_data),
)
_STAND_INS: dict[Any, StandIn] = {
    **{op.default: _like_first for op in _POINTWISE},
    **{op.default: _like_real for op in _OF_REAL_NUMBERS},
    **{op.default: _like_both for op in _BACKWARD},
    **{op.Tensor: _arithmetic for op in (aten.add, aten.mul, aten.sub, aten.div)},
    **{op.Scalar: _with_number for op in (aten.add, aten.mul, aten.sub, aten.div)},
    **{op.default: _changed for op in (aten.sigmoid_, aten.tanh_)},
    aten.pow.Tensor_Scalar: _with_number,
    aten.select_backward.default: lambda args: _empty(args[0], args[1]),
    aten.slice_backward.default: lambda args: _empty(args[0], args[1]),
    aten.cat.default: _concatenated,
    aten.upsample_bilinear2d.default: _upsampled,
    aten.max_pool2d_with_indices_backward.default: lambda args: like(args[1]) if _contiguous(args[1]) else None,
    aten.native_batch_norm.default: _batch_norm,
    aten.native_batch_norm_backward.default: _batch_norm_backward,
    aten.native_group_norm.default: _group_norm,
    aten.native_group_norm_backward.default: _group_norm_backward,
    aten.native_layer_norm.default: _layer_norm,
    aten.native_layer_norm_backward.default: _layer_norm_backward,
    aten.mean.dim: _mean,
    aten.nll_loss_forward.default: _class_loss,
    aten.nll_loss_backward.default: lambda args: like(args[1]),
    **PRODUCTS,
}
_WITH_OPTIONS: dict[Any, Callable[[Sequence[Any], Mapping[str, Any]], Any]] = {
    aten.sum.dim_IntList: _sum,
    aten.mean.default: _whole_mean,
    aten.empty_like.default: _empty_like,
    aten.clone.default: _clone,
}


def stand_in(func: Any, args: Sequence[Any], options: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """The result where a stand-in will do, and else None; `options` are the operation's named arguments."""
    if func in _WITH_OPTIONS:
        given = {name: value for name, value in options.items() if value not in (None, False)}
        return _WITH_OPTIONS[func](args, given) if _floating_meta(args[0]) else None
    maker = _STAND_INS.get(func)
    changes_type = (
        args[-1] is True and func is not aten.mean.dim
    )  # the softmax's half_to_float; a mean keeps dimensions
    operands = args[0] if isinstance(args[0], (list, tuple)) else args[:1]
    if maker is None or not operands or not all(map(_floating_meta, operands)) or changes_type:
        return None
    return maker(args)


def _floating_meta(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_meta and value.is_floating_point()
