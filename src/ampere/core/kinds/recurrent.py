"""Recurrent layers: lstm, gru and rnn.

config: batch, length, layers, directions, bias; `state_grad` where a gradient flows on to the first state,
`dropout` where there is some between layers. Recognised in ampere.tracing, since they are many operations.
"""

from typing import Any, Mapping, Tuple

from ampere.core.layer import Layer

from .kind import Kind, Operand, Shape, Work, padded

GATES = {"lstm": 4, "gru": 3, "rnn": 1}
STATES = {"lstm": 2, "gru": 1, "rnn": 1}


def _back_steps(layer: Layer) -> int:
    """Products with the state's weights in backward: one a step for the weights, and one for the state before it."""
    c: Any = layer.config
    of_state = c["length"] - 1 + int(bool(c.get("state_grad")))
    return int(layer.trainable) * int(c["length"]) + int(layer.backward) * of_state


def _work(layer: Layer, width: int) -> Work:
    c: Any = layer.config
    gates, hidden = GATES[layer.kind], layer.channels_out
    steps, directions = c["length"], c["directions"]
    back_steps = _back_steps(layer) / steps
    flops: Any = 0
    flops_padded: Any = 0
    parameters: Any = 0
    reads: Any = layer.channels_in
    for depth in range(c["layers"]):
        needs_input_grad = layer.input_grad if depth == 0 else layer.backward
        input_passes = 1 + int(layer.trainable) + int(needs_input_grad)
        state_passes = 1 + back_steps
        per_step = 2 * c["batch"] * gates * hidden * directions * steps
        flops = flops + per_step * (reads * input_passes + hidden * state_passes)
        flops_padded = flops_padded + 2 * c["batch"] * gates * padded(hidden, width) * directions * steps * (
            padded(reads, width) * input_passes + padded(hidden, width) * state_passes
        )
        parameters = parameters + directions * gates * hidden * (reads + hidden + (2 if c["bias"] else 0))
        reads = hidden * directions
    cells = c["layers"] * directions
    return Work(
        launches=cells * steps * (1 + int(layer.backward)),
        flops=flops,
        padded_flops=flops_padded,
        values=c["batch"] * steps * (layer.channels_in + cells * hidden * (gates + 2)) * (1 + 2 * int(layer.backward)),
        parameters=parameters * int(layer.trainable),
        parameter_tensors=cells * (4 if c["bias"] else 2) * int(layer.trainable),
        remainders=c["batch"] * steps * cells * (hidden % width) * gates * (1 + 2 * int(layer.backward)),
        # the weights of the state are read again at every step
        weights=cells * steps * gates * padded(hidden, width) ** 2 * (1 + back_steps),
    )


def _inside(layer: Layer) -> Mapping[str, Any]:
    """Dropout between layers: a mask is drawn, scaled and multiplied with."""
    c: Any = layer.config
    values = c["batch"] * c["length"] * (c["layers"] - 1) * layer.channels_out * c["directions"]
    used = (4 + 2 * int(layer.backward)) * values
    return {"dropout": 2 * values, "elementwise": used} if c.get("dropout") else {}


def _coordinates(layer: Layer, width: int) -> Tuple[Any, ...]:
    c: Any = layer.config
    cin, hidden = layer.channels_in, layer.channels_out
    waste = padded(hidden, width) / hidden, padded(cin, width) / cin
    return (cin, hidden, *waste, c["length"], c["batch"], c["layers"], c["directions"])


def _operands(layer: Layer) -> Tuple[Operand, ...]:
    c: Any = layer.config
    sequence = Operand((c["batch"], c["length"], layer.channels_in), layer.input_grad)
    state = Operand((c["layers"] * c["directions"], c["batch"], layer.channels_out), True)
    return (sequence, *(STATES[layer.kind] * [state] if c.get("state_grad") else ()))


def _shape_out(layer: Layer) -> Shape:
    c: Any = layer.config
    return (c["batch"], c["length"], layer.channels_out * c["directions"])


def _recurrent(name: str) -> Kind:
    config = {"batch": 3, "length": 5, "layers": 2, "directions": 2, "bias": True}
    examples = (Layer(name, config, 6, 7), Layer(name, {**config, "state_grad": True}, 6, 7))
    runtimes = ("torch", "jax")
    return Kind(
        name, name.upper(), _work, _coordinates, _operands, _shape_out, runtimes, examples, waste=(2, 3), inside=_inside
    )


KINDS = tuple(map(_recurrent, GATES))
