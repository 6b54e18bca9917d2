"""The tensors among arguments and results."""

from __future__ import annotations

from typing import Any

from torch import Tensor


def tensors_in(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for part in value if not isinstance(part, (int, float)) for t in tensors_in(part)]
    if isinstance(value, dict):
        return tensors_in(list(value.values()))
    return []
