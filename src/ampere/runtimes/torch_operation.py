"""An operation that no kind knows, run as it was described (`ampere.core.kinds.operations`)."""

import re
from typing import Any, Iterator, List

import torch
from torch import Tensor, nn

from ampere.core import Layer
from ampere.core.errors import WorkerError
from ampere.core.kinds.operations import arguments, is_read, is_tensor, named, tensors

CONSTANTS = (torch.dtype, torch.memory_format, torch.layout)


class Operation(nn.Module):
    """Reads the real and whole numbers of the network, and holds its own parameters, masks and sparse tensors."""

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        self.run = found_operation(layer.config["op"])
        self.size = tuple(layer.config["size"])
        self.arguments, self.named = arguments(layer), named(layer)
        every = tensors([*self.arguments, *(value for _, value in self.named)])
        self.held: List[str] = []
        for tensor in (each for each in every if not is_read(each)):
            self.held.append(f"held{len(self.held)}")
            if tensor.get("parameter"):
                self.register_parameter(self.held[-1], nn.Parameter(_held(tensor)))
            else:
                self.register_buffer(self.held[-1], _held(tensor))

    def forward(self, *read: Tensor) -> Tensor:
        given, held = iter(read), (getattr(self, name) for name in self.held)
        values = [_filled(value, given, held) for value in self.arguments]
        more = {name: _filled(value, given, held) for name, value in self.named}
        return _real(self.run(*values, **more), self.size)


def found_operation(name: str) -> Any:
    """The operation of this name; one that changes its operands, or reads none, is never replayed."""
    plain, _, overload = name.partition(".")
    if not re.fullmatch(r"[a-zA-Z_]\w*\.\w+", name, re.ASCII) or plain.startswith(("_unsafe", "as_strided", "__")):
        raise WorkerError("variant_failed", f"{name[:60]} is no operation that can be replayed alone")
    found = getattr(getattr(torch.ops.aten, plain, None), overload, None)
    if found is None:
        raise WorkerError("variant_failed", f"PyTorch {torch.__version__} has no operation {name}: update it there")
    reads = any("Tensor" in str(argument.type) for argument in found._schema.arguments)
    if not reads or found._schema.is_mutable:
        raise WorkerError("variant_failed", f"{name} is no operation that can be replayed alone")
    return found


def _held(tensor: Any) -> Tensor:
    shape: List[int] = tensor["tensor"]
    if tensor.get("mask"):
        return torch.rand(shape) < 0.5
    if tensor.get("entries"):
        return _sparse(shape, int(tensor["entries"]), bool(tensor.get("rows")))
    return torch.randn(shape, dtype=torch.complex64 if tensor.get("complex") else torch.get_default_dtype()) * 0.1


def _sparse(shape: List[int], entries: int, rows: bool) -> Tensor:
    """Entries in their order, each at a random place of its own share of the matrix."""
    height, width = shape
    share = height * width / entries
    places = ((torch.arange(entries) + torch.rand(entries, dtype=torch.float64)) * share).long()
    places = places.clamp(max=height * width - 1)
    indices = torch.stack((places // width, places % width))
    values = torch.rand(entries)
    made = torch.sparse_coo_tensor(indices, values, (height, width), is_coalesced=True, check_invariants=False)
    return made.to_sparse_csr() if rows else made


def _filled(value: Any, given: Iterator[Tensor], held: Iterator[Tensor]) -> Any:
    if isinstance(value, list):
        return [_filled(part, given, held) for part in value]
    if isinstance(value, dict) and "torch" in value:
        constant = getattr(torch, value["torch"], None)
        if not isinstance(constant, CONSTANTS):
            raise WorkerError("variant_failed", f"{value['torch']!r:.60} is no constant of PyTorch")
        return constant
    if not is_tensor(value):
        return value
    if not is_read(value):
        return next(held)
    tensor = next(given)
    return torch.view_as_complex(tensor.contiguous()) if value.get("complex") else tensor


def _real(result: Any, size: Any) -> Tensor:
    """What goes on: the first result of real numbers, joined by all others that a gradient comes back through."""
    results = [t for t in (result if isinstance(result, (list, tuple)) else (result,)) if isinstance(t, Tensor)]
    real = [torch.view_as_real(t) if t.is_complex() else t for t in results if t.is_floating_point() or t.is_complex()]
    if not real:  # whole numbers are no activations
        return torch.zeros(1, device=results[0].device if results else None).expand(size)
    first, *others = real
    for other in others:
        first = first + other.sum() if other.requires_grad else first
    return first
