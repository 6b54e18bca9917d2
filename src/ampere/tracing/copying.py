"""A copy of the user's model that may be hooked and run, while his own stays as it is."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from types import CellType, FunctionType
from typing import Any

import torch
from torch import Tensor, nn

Replace = Callable[[Tensor], Tensor]


def meta_copy(model: nn.Module) -> nn.Module:
    """Structure and shapes only: no weight is read or held."""
    return copied(model, on_meta)


def on_meta(tensor: Tensor) -> Tensor:
    if tensor.layout != torch.strided:  # whose entries count: a real step follows where shapes alone will not do
        return tensor.detach().clone()
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")


def fake_copy(model: nn.Module, dtype: torch.dtype) -> nn.Module:
    """A copy on the tensors of the mode that is on: they say that they are on the CPU, and hold nothing."""
    return copied(model, lambda tensor: on_cpu(tensor, dtype))


def on_cpu(tensor: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    kept = dtype if dtype is not None and tensor.is_floating_point() else tensor.dtype
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=kept, device="cpu")


def real_copy(model: nn.Module) -> nn.Module:
    return copied(model, with_values)


def with_values(tensor: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    made = filled(tensor) if tensor.is_meta else tensor.data.cpu().clone()
    return made.to(dtype) if dtype is not None and made.is_floating_point() else made


def filled(tensor: Tensor) -> Tensor:
    """Values for a tensor that has only a shape; zeros are valid token ids in any vocabulary."""
    if tensor.is_floating_point() or tensor.is_complex():
        return torch.randn(tensor.shape, dtype=tensor.dtype) * 0.1
    return torch.zeros(tensor.shape, dtype=tensor.dtype)


def copied(model: nn.Module, replace: Replace) -> nn.Module:
    memo: dict[int, Any] = {}
    for tensor in _tensors(model):
        if id(tensor) not in memo:
            memo[id(tensor)] = _like(tensor, replace(tensor))
    try:
        made = copy.deepcopy(model, copies := dict(memo))
    except Exception:
        _share_uncopyable(model, memo)
        made = copy.deepcopy(model, copies := memo)
    for module in made.modules():
        _rebind(module.__dict__, copies)
    if not made.training:
        made.train()
    return made


def _rebind(held: dict[Any, Any], copies: dict[int, Any], depth: int = 1) -> None:
    """Let the functions that a copied module holds, as its hooks, see copies of what they saw: a function is shared by
    `deepcopy`, and one that was defined around `self` would read and write the user's own model."""
    for name, value in held.items():
        if isinstance(value, dict) and depth and copies.get(id(value)) is not value:  # the user's own stays
            _rebind(value, copies, depth - 1)
        elif isinstance(value, FunctionType):
            held[name] = _rebound(value, copies)


def _rebound(function: FunctionType, copies: dict[int, Any], depth: int = 2) -> FunctionType:
    def seen(cell: CellType) -> CellType:
        try:
            content = cell.cell_contents
        except ValueError:  # of a name that is not set yet
            return cell
        inner = isinstance(content, FunctionType) and depth
        new = _rebound(content, copies, depth - 1) if inner else copies.get(id(content), content)
        return cell if new is content else CellType(new)

    cells = tuple(map(seen, function.__closure__ or ()))
    if all(new is old for new, old in zip(cells, function.__closure__ or (), strict=True)):
        return function
    made = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, cells)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__dict__.update(function.__dict__)
    return made


def _share_uncopyable(model: nn.Module, memo: dict[int, Any]) -> None:
    """Locks, files, generators: a trace needs no copies of them."""
    for module in model.modules():
        for name, value in module.__dict__.items():
            try:
                if name != "_modules":
                    copy.deepcopy(value, dict(memo))
            except Exception:
                memo[id(value)] = value


def _like(tensor: Tensor, new: Tensor) -> Tensor:
    if isinstance(tensor, nn.Parameter):
        return nn.Parameter(new, requires_grad=tensor.requires_grad)
    return new.requires_grad_(tensor.requires_grad) if tensor.is_leaf else new


def _tensors(model: nn.Module) -> Iterator[Tensor]:
    for module in model.modules():
        yield from _held(list(module.__dict__.values()), 2)


def _held(values: list[Any], depth: int) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif depth and isinstance(value, (list, tuple)):
            yield from _held(list(value), depth - 1)
        elif depth and isinstance(value, dict):
            yield from _held(list(value.values()), depth - 1)
        elif depth and not isinstance(value, (nn.Module, type)):  # such as a distribution
            yield from _held(list(getattr(value, "__dict__", {}).values()), depth - 1)
