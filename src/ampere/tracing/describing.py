"""An operation that no kind knows, described so that a worker can replay it alone (`ampere.core.kinds.operations`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ampere.core.kinds import Draft

aten = torch.ops.aten
CONSTANTS = (torch.dtype, torch.memory_format, torch.layout)
SPARSE = (torch.sparse_coo, torch.sparse_csr)
ANY_NUMBER = 256  # whole numbers that are no indices are below it
INDEXED = ("dim", "axis")


MASKED = ("index.Tensor", "index_put.default")  # where a mask decides how much there is


class Unplain(Exception):
    """An argument that cannot be described."""


def describe(
    func: Any, args: Sequence[Any], kwargs: dict[str, Any], outputs: Sequence[Tensor], owned: Callable[[Any], bool]
) -> Draft | None:
    """The operation as a layer; None where it cannot be replayed alone."""
    name = _functional(func)
    size = _size(outputs)
    if name is None or size is None or (name in MASKED and any(t.dtype == torch.bool for t in _in_list(args))):
        return None
    weights: list[Tensor] = []
    sources: list[Tensor] = []

    def described(value: Any) -> Any:
        if isinstance(value, Tensor):
            (weights if owned(value) else sources).append(value)
            return _tensor(value, owned(value), lambda: below(func, args, value))
        if isinstance(value, (list, tuple)):
            return [described(part) for part in value]
        if isinstance(value, CONSTANTS):
            return {"torch": str(value).replace("torch.", "")}
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        raise Unplain

    try:
        given = tuple(json.dumps(described(value)) for value in args)
        named = tuple(
            json.dumps([key, described(value)])
            for key, value in kwargs.items()
            if value is not None and not isinstance(value, torch.device) and key != "pin_memory"
        )
    except (Unplain, TypeError, ValueError):
        return None
    config = {"op": name, "arguments": given, "size": size, **({"named": named} if named else {})}
    channels = _channels((*sources, *weights)[0].shape) if (sources or weights) else 1
    return Draft("operation", config, channels, _channels(size), tuple(weights), tuple(sources))


def _in_list(args: Sequence[Any]) -> list[Tensor]:
    return [t for value in args if isinstance(value, (list, tuple)) for t in value if isinstance(t, Tensor)]


def _functional(func: Any) -> str | None:
    """The name of the operation that leaves its operands as they are; None where it has none."""
    name, overload = func._schema.name.partition("::")[2], func._schema.overload_name or "default"
    if func._schema.is_mutable:
        name = name[:-1]
    found = getattr(getattr(aten, name, None), overload, None)
    known = func.namespace == "aten" and found is not None and not found._schema.is_mutable
    return f"{name}.{overload}" if known else None


def _size(outputs: Sequence[Tensor]) -> tuple[int, ...] | None:
    """What goes on from it: the first result of real numbers, or whatever there is."""
    dense = [t for t in outputs if t.layout == torch.strided]
    if len(dense) < len(outputs) or not dense:
        return None
    found = next((t for t in dense if t.is_floating_point() or t.is_complex()), dense[0])
    return (*found.shape, 2) if found.is_complex() else tuple(found.shape)


def _tensor(tensor: Tensor, owned: bool, below: Callable[[], int]) -> dict[str, Any]:
    record: dict[str, Any] = {"tensor": list(tensor.shape)}
    if tensor.layout != torch.strided:
        if tensor.layout not in SPARSE or tensor.dim() != 2 or tensor.requires_grad or not tensor._nnz():
            raise Unplain
        return {**record, "entries": tensor._nnz(), **({"rows": True} if tensor.layout == torch.sparse_csr else {})}
    if tensor.dtype == torch.bool:
        return {**record, "mask": True}
    if tensor.dtype in (torch.float64, torch.complex128, torch.complex32):
        raise Unplain
    if tensor.is_complex():
        record["complex"] = True
    elif not tensor.is_floating_point():
        return {**record, "below": below()}
    return {**record, **({"parameter": True} if owned else {"grad": True} if tensor.requires_grad else {})}


def below(func: Any, args: Sequence[Any], index: Tensor) -> int:
    """Indices are below the size of what they are taken from, along their dimension."""
    first = args[0] if args else None
    if not isinstance(first, Tensor) or not first.is_floating_point() or not first.dim():
        return ANY_NUMBER
    places = args[1] if len(args) > 1 and isinstance(args[1], (list, tuple)) else ()
    of_place = [first.shape[place] for place, part in enumerate(places) if part is index]
    if of_place:
        return max(1, int(of_place[0]))
    names = [argument.name for argument in func._schema.arguments]
    dims = [value for name, value in zip(names, args, strict=False) if name in INDEXED and isinstance(value, int)]
    return max(1, int(first.shape[dims[0] if dims else 0]))


def _channels(shape: Sequence[int]) -> int:
    """The second dimension of images, the last of anything else."""
    return int(shape[1] if len(shape) > 3 else shape[-1]) if shape else 1
