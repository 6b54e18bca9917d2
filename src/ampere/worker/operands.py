"""What a described layer reads: how many tensors, of which shapes, and with a gradient or without."""

from typing import Callable, Dict, NamedTuple, Tuple

from ..network import KINDS, Layer
from ..network.kinds.kind import Shape

FREE_OF_PARAMETERS = ("matmul", "attention", "glue")
STATES = {"lstm": 2, "gru": 1, "rnn": 1}


class Operand(NamedTuple):
    shape: Shape
    grad: bool
    tokens: int = 0  # whole numbers below it, where not 0


def operands(layer: Layer) -> Tuple[Operand, ...]:
    return OPERANDS.get(layer.kind, _one)(layer)


def shape_out(layer: Layer) -> Shape:
    return operands(layer)[0].shape if layer.kind == "glue" else tuple(KINDS[layer.kind].shape_out(layer))


def has_gradient(layer: Layer) -> bool:
    """Whether a gradient comes back into the layer's output."""
    return layer.input_grad or (layer.trainable and layer.kind not in FREE_OF_PARAMETERS)


def _one(layer: Layer) -> Tuple[Operand, ...]:
    return (Operand(tuple(KINDS[layer.kind].shape_in(layer)), layer.input_grad),)


def _tokens(layer: Layer) -> Tuple[Operand, ...]:
    return (Operand(tuple(layer.config["lead"]), False, layer.channels_in),)


def _factors(layer: Layer) -> Tuple[Operand, ...]:
    batch, both = layer.config["batch"], layer.config.get("gradients", 2) == 2
    second = (batch, layer.channels_in, layer.channels_out)
    return (*_one(layer), Operand(second, layer.input_grad and both))


def _queries_keys_values(layer: Layer) -> Tuple[Operand, ...]:
    c = layer.config
    keys = (c["batch"], c["heads"], c["keys"], layer.channels_in)
    values = (*keys[:-1], layer.channels_out)
    return (*_one(layer), Operand(keys, layer.input_grad), Operand(values, layer.input_grad))


def _sequence(layer: Layer) -> Tuple[Operand, ...]:
    c = layer.config
    state = Operand((c["layers"] * c["directions"], c["batch"], layer.channels_out), True)
    return (*_one(layer), *(STATES[layer.kind] * [state] if c.get("state_grad") else ()))


def _glue(layer: Layer) -> Tuple[Operand, ...]:
    """A glue layer is all tail: its input is what the first operation reads, of the shape that it tells, if it does."""
    batch, size = layer.config["batch"], layer.config.get("size")
    if size is not None:
        return (Operand((batch, *size), layer.input_grad),)
    values = layer.tail[0].values_in if layer.tail else batch
    return (Operand((batch, max(1, round(values / batch))), layer.input_grad),)


OPERANDS: Dict[str, Callable[[Layer], Tuple[Operand, ...]]] = {
    "embedding": _tokens,
    "matmul": _factors,
    "attention": _queries_keys_values,
    "lstm": _sequence,
    "gru": _sequence,
    "rnn": _sequence,
    "glue": _glue,
}
