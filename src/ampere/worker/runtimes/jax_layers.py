"""Layer kinds as flax modules. Each takes its arrays, stored as `jax_layout` says, and a key for what is random."""

from typing import Any, Callable, Dict, Optional

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array

from ...network import Layer
from .jax_recurrent import Recurrent

DROPOUT = 0.1  # as in PyTorch's variants

Key = Optional[Array]


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


class Matmul(nnx.Module):
    def __call__(self, key: Key, left: Array, right: Array) -> Array:
        return jnp.matmul(left, right)


class Attention(nnx.Module):
    def __init__(self, layer: Layer) -> None:
        self.causal, self.dropout = bool(layer.config.get("causal")), is_random(layer)

    def __call__(self, key: Key, queries: Array, keys: Array, values: Array) -> Array:
        if not self.dropout and keys.shape == values.shape:
            return nnx.dot_product_attention(queries, keys, values, is_causal=self.causal)
        # Flax's own wants heads as wide in values as in keys.
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


BUILDERS: Dict[str, Callable[[Layer, Any], nnx.Module]] = {
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
    "scale": Scale,
    "glue": lambda layer, dtype: Nothing(),
}


def drop(key: Key, values: Array) -> Array:
    """Dropout as flax has it."""
    kept = jax.random.bernoulli(key, 1 - DROPOUT, values.shape)  # type: ignore[arg-type]
    return jnp.where(kept, values / (1 - DROPOUT), jnp.zeros_like(values))
