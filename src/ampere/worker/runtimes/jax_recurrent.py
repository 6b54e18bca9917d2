"""Recurrent layers with PyTorch's parameters: the product with the input for all steps at once, then a scan."""

from typing import Any, Callable, Dict, List, Tuple

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array, lax

from ...network import Layer
from ...network.kinds.recurrent import GATES

State = Tuple[Array, ...]
Cell = Callable[[Array, Array, State], State]  # what comes of the input, what of the state -> the next state


def _lstm(ours: Array, before: Array, state: State) -> State:
    gate_in, forget, new, out = jnp.split(ours + before, 4, axis=-1)
    memory = jax.nn.sigmoid(forget) * state[1] + jax.nn.sigmoid(gate_in) * jnp.tanh(new)
    return jax.nn.sigmoid(out) * jnp.tanh(memory), memory


def _gru(ours: Array, before: Array, state: State) -> State:
    (reset, update, new), (old_reset, old_update, old) = jnp.split(ours, 3, axis=-1), jnp.split(before, 3, axis=-1)
    kept = jax.nn.sigmoid(update + old_update)
    return ((1 - kept) * jnp.tanh(new + jax.nn.sigmoid(reset + old_reset) * old) + kept * state[0],)


def _rnn(ours: Array, before: Array, state: State) -> State:
    return (jnp.tanh(ours + before),)


CELLS: Dict[str, Tuple[Cell, int]] = {"lstm": (_lstm, 2), "gru": (_gru, 1), "rnn": (_rnn, 1)}


class Recurrent(nnx.Module):
    """Its sequence of outputs; the final state is left out."""

    def __init__(self, layer: Layer, dtype: Any) -> None:
        c: Any = layer.config
        self.kind, self.hidden, self.directions = layer.kind, layer.channels_out, int(c["directions"])
        made, reads = [], layer.channels_in
        for _ in range(c["layers"]):
            made += [self._weights(reads, bool(c["bias"]), dtype) for _ in range(self.directions)]
            reads = layer.channels_out * self.directions
        self.weights = nnx.List(made)

    def __call__(self, key: Any, sequence: Array, *given: Array) -> Array:
        for depth in range(len(self.weights) // self.directions):
            places = range(depth * self.directions, (depth + 1) * self.directions)
            outputs = [self._scanned(place, sequence, given) for place in places]
            sequence = outputs[0] if len(outputs) == 1 else jnp.concatenate(outputs, axis=-1)
        return sequence

    def _weights(self, reads: int, bias: bool, dtype: Any) -> "nnx.Dict[Any]":
        wide = GATES[self.kind] * self.hidden
        shapes: Dict[str, Tuple[int, ...]] = {"kernel": (reads, wide), "state_kernel": (self.hidden, wide)}
        if bias:
            shapes.update(bias=(wide,), state_bias=(wide,))
        return nnx.Dict({name: nnx.Param(jnp.zeros(shape, dtype)) for name, shape in shapes.items()})

    def _scanned(self, place: int, sequence: Array, given: State) -> Array:
        weights, (cell, states) = self.weights[place], CELLS[self.kind]
        biased = "bias" in weights
        ours = sequence @ weights["kernel"][...] + (weights["bias"][...] if biased else 0)
        fresh: List[Array] = [jnp.zeros((sequence.shape[0], self.hidden), sequence.dtype)] * states
        start = tuple(state[place] for state in given) or tuple(fresh)

        def step(state: State, now: Array) -> Tuple[State, Array]:
            before = state[0] @ weights["state_kernel"][...] + (weights["state_bias"][...] if biased else 0)
            after = cell(now, before, state)
            return after, after[0]

        backwards = place % self.directions == 1
        outputs: Array = lax.scan(step, start, ours.swapaxes(0, 1), reverse=backwards)[1]
        return outputs.swapaxes(0, 1)
