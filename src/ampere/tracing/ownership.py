"""Which parameters an operand comes from, through views, `detach` and computations on parameters alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn


class Ownership:
    def __init__(self, model: nn.Module) -> None:
        self.names: dict[nn.Parameter, str] = {}
        self._by_storage: dict[int, nn.Parameter | None] = {}
        self._alive: list[Tensor] = []
        self.counters = {id(b) for n, b in model.named_buffers() if n.endswith("num_batches_tracked")}
        self._buffers = {_storage(b) for b in model.buffers()}
        for name, parameter in model.named_parameters():
            self.names[parameter] = name
            self._by_storage[_storage(parameter)] = parameter

    def owns(self, value: Any) -> bool:
        return isinstance(value, Tensor) and _storage(value) in self._by_storage

    def parameters(self, tensors: Sequence[Tensor]) -> list[nn.Parameter]:
        """The parameters that are operands themselves, each once."""
        found = (self._by_storage.get(_storage(tensor)) for tensor in tensors)
        return list(dict.fromkeys(p for p in found if p is not None))

    def derive(self, tensors: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
        """What is computed from parameters (and buffers) alone is still no activation."""
        storages = set(map(_storage, tensors)) - self._buffers
        if storages and storages <= self._by_storage.keys():
            for output in outputs:
                self._by_storage.setdefault(_storage(output), None)
                self._alive.append(output)


def _storage(tensor: Tensor) -> int:
    try:
        return int(tensor.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):
        return 0
