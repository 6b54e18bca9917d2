"""Modules that no table knows: measured as they are, and named.

A module call is opaque if it directly runs an operation of unknown class, or a product whose FLOPs
are not those of its kind. Everything that runs inside the call then belongs to one layer.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ampere.network import Layer, work
from ampere.network.inputs import InputSpec

from .calls import Call
from .drafts import drafted
from .ops import UNKNOWN
from .record import Cost, Operation
from .tensors import tensors_in

# Bookkeeping on a few whole numbers does not make a module a stranger.
SMALL = 1 << 16


def find_opaque(operations: list[Operation]) -> dict[Operation, Call]:
    """The call that covers each operation of an opaque one: the outermost that is marked."""
    strange = [o for o in operations if _is_strange(o)]
    marked = {o.call for o in strange if o.call.parent is not None}
    covering: dict[Operation, Call] = {}
    for operation in operations:
        around = [call for call in operation.call.chain() if call in marked]
        if around:
            covering[operation] = around[-1]
    for operation in strange:
        if operation.call.parent is None and (operation.parameters or operation.cost.flops):
            covering[operation] = Call("", operation.call.module, None)
    return covering


def _is_strange(operation: Operation) -> bool:
    if operation.op_class == UNKNOWN:
        return operation.backward or bool(operation.parameters) or operation.cost.values > SMALL
    if operation.trusted:
        return False
    return not _agrees(operation)


def _agrees(operation: Operation) -> bool:
    told = work(drafted(operation)).flops if operation.draft else 0
    return abs(float(told) - operation.cost.flops) <= 1e-3 * operation.cost.flops


def opaque_layer(call: Call, operations: list[Operation], values: int, tensors: int) -> Layer:
    cost = Cost()
    for operation in operations:
        cost.add(operation.cost)
    inputs, outputs = tensors_in((call.args, call.kwargs)), tensors_in(call.output)
    shape_in, shape_out = _shape(inputs), _shape(outputs)
    config: dict[str, Any] = {
        "path": call.path,
        "class": type(call.module).__name__ if call.path else operations[0].name,
        "launches": cost.launches,
        "flops": cost.flops,
        "values": cost.values,
        "parameters": values,
        "parameter_tensors": tensors,
        "shape_in": shape_in,
        "shape_out": shape_out,
        "batch": shape_in[0],
        "inputs": _arguments(call),
    }
    backward = any(o.backward for o in operations)
    return Layer(
        "opaque",
        config,
        _channels(shape_in),
        _channels(shape_out),
        name=call.path or operations[0].name,
        trainable=tensors > 0,
        input_grad=backward and any(t.requires_grad for t in inputs),
    )


def _arguments(call: Call) -> tuple[str, ...]:
    """The tensors it is called with, as people write them: `8x16`, or `mask=8x8:bool` if named."""
    named = [f"{name}={_spec(value)}" for name, value in call.kwargs.items() if isinstance(value, Tensor)]
    return (*(str(_spec(tensor)) for tensor in tensors_in(call.args)), *named)


def _spec(tensor: Tensor) -> InputSpec:
    return InputSpec(tuple(tensor.shape), str(tensor.dtype).replace("torch.", ""))


def _shape(tensors: list[Tensor]) -> tuple[int, ...]:
    return tuple(tensors[0].shape) if tensors and tensors[0].dim() else (1,)


def _channels(shape: tuple[int, ...]) -> int:
    """The second dimension of images, the last of anything else."""
    return shape[1] if len(shape) > 3 else shape[-1]
