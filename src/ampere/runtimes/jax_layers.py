"""Layer kinds as flax modules. Each takes its arrays, and a key for what is random.

Arrays lie in memory as JAX likes them: images with their channels last, heads of attention after their places. A
described network knows shapes as PyTorch has them. What a layer reads is made up, so another order of its values costs
nothing: every array is stored as its own layer likes it, and read by a reshape, never by a transposition.
"""

from typing import Any, Callable, Dict, List, Optional, Tuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array, lax

from ampere.core import Layer
from ampere.core.kinds.kind import Shape
from ampere.core.kinds.recurrent import GATES

from .table import checked_builders

IMAGES = ("conv", "conv_grouped", "conv_transposed", "norm_batch", "nonparametric")
HEADS = ("attention",)


def axis(dimension: int, rank: int, layer: Layer) -> int:
    """Where a dimension of a layer's array is stored."""
    if layer.kind in IMAGES and rank > 2 and dimension > 0:
        return rank - 1 if dimension == 1 else dimension - 1
    if layer.kind in HEADS and rank == 4:
        return (0, 2, 1, 3)[dimension]
    return dimension


def axes(dimensions: Tuple[int, ...], rank: int, layer: Layer) -> Tuple[int, ...]:
    return tuple(axis(dimension, rank, layer) for dimension in dimensions)


def stored(shape: Shape, layer: Layer) -> Shape:
    found = list(shape)
    for dimension, size in enumerate(shape):
        found[axis(dimension, len(shape), layer)] = size
    return tuple(found)


DROPOUT = 0.1  # as in PyTorch's variants

Key = Optional[Array]
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
    """A recurrent layer with PyTorch's parameters: the product with the input for all steps at once, then a scan.

    It returns its sequence of outputs; the final state is left out.
    """

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


def build_layer(layer: Layer, dtype: Any) -> nnx.Module:
    """Its parameters have shapes only, until they are filled."""
    made: nnx.Module = nnx.eval_shape(lambda: BUILDERS[layer.kind](layer, dtype))
    return made


def is_random(layer: Layer) -> bool:
    return layer.kind == "attention" and bool(layer.config.get("dropout"))


class Plain(nnx.Module):
    """A module of flax's own: one array in, one out, nothing random."""

    def __init__(self, module: nnx.Module) -> None:
        self.module = module

    def __call__(self, key: Key, values: Array) -> Array:
        made: Array = self.module(values)
        return made


def _convolution(layer: Layer, dtype: Any) -> nnx.Module:
    c: Any = layer.config
    return Plain(
        nnx.Conv(
            layer.channels_in,
            layer.channels_out,
            c["kernel"],
            strides=c["stride"],
            padding=[(p, p) for p in c["padding"]],
            kernel_dilation=c["dilation"],
            feature_group_count=c["groups"] or layer.channels_in,
            use_bias=bool(c["bias"]),
            dtype=dtype,
            param_dtype=dtype,
            rngs=nnx.Rngs(0),
        )
    )


def _transposed(layer: Layer, dtype: Any) -> nnx.Module:
    """PyTorch's padding takes away from the output; here it is what is added around the spread-out input."""
    c: Any = layer.config
    reach = [d * (k - 1) - p for k, p, d in zip(c["kernel"], c["padding"], c["dilation"])]
    return Plain(
        nnx.ConvTranspose(
            layer.channels_in,
            layer.channels_out,
            c["kernel"],
            strides=c["stride"],
            padding=[(r, r + more) for r, more in zip(reach, c["output_padding"])],
            kernel_dilation=c["dilation"],
            use_bias=bool(c["bias"]),
            dtype=dtype,
            param_dtype=dtype,
            rngs=nnx.Rngs(0),
        )
    )


def _linear(layer: Layer, dtype: Any) -> nnx.Module:
    bias = bool(layer.config["bias"])
    sizes = layer.channels_in, layer.channels_out
    return Plain(nnx.Linear(*sizes, use_bias=bias, dtype=dtype, param_dtype=dtype, rngs=nnx.Rngs(0)))


def _norm_batch(layer: Layer, dtype: Any) -> nnx.Module:
    bias = bool(layer.config.get("bias", True))
    how: Dict[str, Any] = {"use_bias": bias, "dtype": dtype, "param_dtype": dtype, "rngs": nnx.Rngs(0)}
    return Plain(nnx.BatchNorm(layer.channels_in, use_running_average=False, momentum=0.9, **how))


def _norm_layer(layer: Layer, dtype: Any) -> nnx.Module:
    groups, bias = layer.config.get("groups"), bool(layer.config.get("bias", True))
    how: Dict[str, Any] = {"use_bias": bias, "dtype": dtype, "param_dtype": dtype, "rngs": nnx.Rngs(0)}
    if groups:
        return Plain(nnx.GroupNorm(layer.channels_in, num_groups=groups, **how))
    return Plain(nnx.LayerNorm(layer.channels_in, **how))


def _embedding(layer: Layer, dtype: Any) -> nnx.Module:
    sizes = layer.channels_in, layer.channels_out
    return Plain(nnx.Embed(*sizes, dtype=dtype, param_dtype=dtype, rngs=nnx.Rngs(0)))


class Scale(nnx.Module):
    """A product with a parameter, broadcast over all that precedes the channels."""

    def __init__(self, layer: Layer, dtype: Any) -> None:
        self.scale = nnx.Param(jnp.ones((layer.channels_out,), dtype))
        self.repeats = -(-layer.config["values"] // layer.channels_out)
        self.fits = layer.config["values"] % layer.channels_out == 0

    def __call__(self, key: Key, values: Array) -> Array:
        if self.fits:
            return (values.reshape(self.repeats, -1) * self.scale[...]).reshape(values.shape)
        return values * jnp.tile(self.scale[...], self.repeats)[: values.size]


class EmbeddingBag(nnx.Module):
    """Bags that are as even as the number of tokens lets them be."""

    def __init__(self, layer: Layer, dtype: Any) -> None:
        c: Any = layer.config
        sizes = layer.channels_in, layer.channels_out
        self.table = nnx.Embed(*sizes, dtype=dtype, param_dtype=dtype, rngs=nnx.Rngs(0))
        self.tokens, self.bags = int(c["tokens"]), int(c["bags"])
        self.mean, self.largest = bool(c.get("mean")), bool(c.get("largest"))

    def __call__(self, key: Key, tokens: Array) -> Array:
        starts = np.arange(self.bags) * self.tokens // self.bags
        counts = np.diff(starts, append=self.tokens)
        bag_of = np.repeat(np.arange(self.bags), counts)
        gathered = jax.ops.segment_max if self.largest else jax.ops.segment_sum
        made: Array = gathered(self.table(tokens), bag_of, self.bags, indices_are_sorted=True)
        return made / jnp.asarray(counts, made.dtype)[:, None] if self.mean else made


class Gather(nnx.Module):
    def __call__(self, key: Key, rows: Array, index: Array) -> Array:
        return rows[index]


class Scatter(nnx.Module):
    def __init__(self, layer: Layer) -> None:
        self.rows = int(layer.config["rows_out"])

    def __call__(self, key: Key, rows: Array, index: Array) -> Array:
        return jnp.zeros((self.rows, rows.shape[1]), rows.dtype).at[index].add(rows)


class Matmul(nnx.Module):
    def __call__(self, key: Key, left: Array, right: Array) -> Array:
        return jnp.matmul(left, right)


class Attention(nnx.Module):
    def __init__(self, layer: Layer) -> None:
        self.causal, self.dropout = bool(layer.config.get("causal")), is_random(layer)

    def __call__(self, key: Key, queries: Array, keys: Array, values: Array) -> Array:
        if not self.dropout and keys.shape == values.shape:
            return nnx.dot_product_attention(queries, keys, values, is_causal=self.causal)
        # Flax's own needs heads as wide in values as in keys.
        scores = jnp.einsum("bqhd,bkhd->bhqk", queries * queries.shape[-1] ** -0.5, keys)
        if self.causal:
            scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e30)
        weights = jax.nn.softmax(scores, axis=-1)
        if self.dropout:
            weights = drop(key, weights)
        return jnp.einsum("bhqk,bkhd->bqhd", weights, values)


class Nothing(nnx.Module):
    def __call__(self, key: Key, values: Array) -> Array:
        return values


BUILDERS: Dict[str, Callable[[Layer, Any], nnx.Module]] = checked_builders(
    "jax",
    {
        "conv": _convolution,
        "conv_grouped": _convolution,
        "conv_transposed": _transposed,
        "linear": _linear,
        "matmul": lambda layer, dtype: Matmul(),
        "attention": lambda layer, dtype: Attention(layer),
        "lstm": Recurrent,
        "gru": Recurrent,
        "rnn": Recurrent,
        "norm_batch": _norm_batch,
        "norm_layer": _norm_layer,
        "embedding": _embedding,
        "embedding_bag": EmbeddingBag,
        "gather": lambda layer, dtype: Gather(),
        "scatter": lambda layer, dtype: Scatter(layer),
        "scale": Scale,
        "nonparametric": lambda layer, dtype: Nothing(),
    },
)


def drop(key: Key, values: Array) -> Array:
    """Dropout as flax has it."""
    kept = jax.random.bernoulli(key, 1 - DROPOUT, values.shape)  # type: ignore[arg-type]
    return jnp.where(kept, values / (1 - DROPOUT), jnp.zeros_like(values))
