"""Operations that no other kind knows, replayed alone as they are: the name, and what each argument is.

config: op         an operation of PyTorch and its overload: `_fft_r2c.default`
        arguments  a JSON text for each, in the order of the operation's arguments
        named      JSON texts [name, value] of those that have to be named; left out where there are none
        size       of what goes on from it
        launches, flops, values   what the tracer counted, forward and backward

An argument is a plain value, {"torch": "float32"} for a constant of the library, or a tensor:

    {"tensor": [8, 64]}                       real numbers
    {"tensor": [8, 64], "grad": true}         through which the gradient goes on
    {"tensor": [8, 64], "parameter": true}    which the layer holds itself; trained where the layer is
    {"tensor": [8, 64], "complex": true}      read and written as pairs of real numbers
    {"tensor": [8, 64], "below": 10}          whole numbers, such as indices
    {"tensor": [8, 64], "mask": true}         true and false
    {"tensor": [8, 64], "entries": 99}        sparse; with "rows": true compressed by rows
"""

import json
from typing import Any, Iterator, List, Tuple
from zlib import crc32

from ampere.core.layer import Layer

from .kind import FIXED, Kind, Operand, Shape, Work

APART = 8.0  # octaves between operations: what one costs says little of another
PLACES = 9  # on each of two coordinates


def arguments(layer: Layer) -> List[Any]:
    return [json.loads(text) for text in layer.config["arguments"]]


def named(layer: Layer) -> List[Any]:
    return [json.loads(text) for text in layer.config.get("named", ())]


def is_tensor(value: Any) -> bool:
    return isinstance(value, dict) and "tensor" in value


def is_read(tensor: Any) -> bool:
    """Whether it comes from elsewhere in the network: the layer makes what is no plain number itself."""
    return not any(tensor.get(key) for key in ("parameter", "mask", "entries"))


def tensors(value: Any) -> Iterator[Any]:
    """The descriptions of all tensors in an argument, in their order."""
    if is_tensor(value):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from tensors(part)


def _operands(layer: Layer) -> Tuple[Operand, ...]:
    values = [*arguments(layer), *(value for _, value in named(layer))]
    return tuple(_operand(tensor, layer) for tensor in tensors(values) if is_read(tensor))


def _operand(tensor: Any, layer: Layer) -> Operand:
    shape = (*tensor["tensor"], 2) if tensor.get("complex") else tuple(tensor["tensor"])
    return Operand(shape, bool(tensor.get("grad")) and layer.input_grad, int(tensor.get("below", 0)))


def _shape_out(layer: Layer) -> Shape:
    return tuple(layer.config["size"])


def _counted(layer: Layer, width: int) -> Work:
    c: Any = layer.config
    return Work(launches=c["launches"], flops=c["flops"], values=c["values"])


def _coordinates(layer: Layer, width: int) -> Tuple[Any, ...]:
    drawn = crc32(layer.config["op"].encode())
    place = drawn % PLACES, drawn // PLACES % PLACES
    return (1 + layer.config["flops"], 1 + layer.config["values"], *(2.0 ** (APART * step) for step in place))


def _example(op: str, size: Shape, *values: Any) -> Layer:
    texts = tuple(json.dumps(value) for value in values)
    counts = {"launches": 3, "flops": 0, "values": 100}
    return Layer("operation", {"op": op, "arguments": texts, "size": size, **counts}, 1, 1, trainable=False)


EXAMPLES = (
    _example("logcumsumexp.default", (3, 4), {"tensor": [3, 4], "grad": True}, 1),
    _example("_fft_r2c.default", (3, 5, 2), {"tensor": [3, 8], "grad": True}, [1], 0, True),
    _example("mm.default", (3, 4), {"tensor": [3, 6], "entries": 7}, {"tensor": [6, 4], "grad": True}),
)

OPERATION = Kind(
    "operation",
    "unknown operation",
    _counted,
    _coordinates,
    _operands,
    _shape_out,
    ("torch",),
    EXAMPLES,
    widths=FIXED,
    has_surface=False,
)

KINDS = (OPERATION,)
