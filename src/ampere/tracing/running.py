"""Runs one operation, at once where a stand-in will do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from .standins import stand_in
from .tensors import tensors_in


def run(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    out = stand_in(func, args) if args else None
    if out is not None:
        return out
    try:
        return func(*args, **kwargs)
    except RuntimeError:
        tensors = tensors_in((args, kwargs))
        if len({t.device for t in tensors}) < 2 or not any(t.is_meta for t in tensors):
            raise
        # A tensor made without naming a device is on the CPU, while the model is on none.
        return func(*_on_meta(args), **_on_meta(kwargs))


def _on_meta(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.to("meta")
    if isinstance(value, (list, tuple)):
        return type(value)(map(_on_meta, value))
    return {k: _on_meta(v) for k, v in value.items()} if isinstance(value, dict) else value
