"""Results of the right shape, made at once.

Some operations on meta tensors run through Python reference code that takes a hundred times longer
than making an empty tensor. The commonest have a stand-in here; None means: run the real one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten
StandIn = Callable[[Sequence[Any]], Any]


def _like_first(args: Sequence[Any]) -> Any:
    return torch.empty_like(args[0])


def _like_both(args: Sequence[Any]) -> Any:
    a, b = args[0], args[1]
    if isinstance(a, Tensor) and isinstance(b, Tensor) and a.shape == b.shape and a.dtype == b.dtype:
        return torch.empty_like(a) if a.stride() == b.stride() else None
    return None


def _batch_norm(args: Sequence[Any]) -> Any:
    x, training = args[0], args[5]
    statistics = x.shape[1] if training else 0
    return torch.empty_like(x), x.new_empty(statistics), x.new_empty(statistics)


def _batch_norm_backward(args: Sequence[Any]) -> Any:
    grad, x, weight, mask = args[0], args[1], args[2], args[-1]
    parameter = weight if weight is not None else x.new_empty(x.shape[1])
    wanted = zip((grad, parameter, parameter), mask, strict=True)
    return tuple(torch.empty_like(like) if asked else None for like, asked in wanted)


_BACKWARD = (aten.threshold_backward, aten.sigmoid_backward, aten.tanh_backward, aten.gelu_backward, aten.silu_backward)
_STAND_INS: dict[Any, StandIn] = {
    **{op.default: _like_first for op in (aten.relu, aten.gelu, aten.silu, aten._log_softmax, aten._softmax)},
    **{op.default: _like_both for op in _BACKWARD},
    **{op.Tensor: _like_both for op in (aten.add, aten.mul, aten.sub)},
    aten._log_softmax_backward_data.default: _like_both,
    aten._softmax_backward_data.default: _like_both,
    aten.native_batch_norm.default: _batch_norm,
    aten.native_batch_norm_backward.default: _batch_norm_backward,
}


def stand_in(func: Any, args: Sequence[Any]) -> Any:
    maker = _STAND_INS.get(func)
    widens = args[-1] is True  # the softmax's half_to_float
    if maker is None or widens or not _floating_meta(args[0]):
        return None
    return maker(args)


def _floating_meta(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_meta and value.is_floating_point()
