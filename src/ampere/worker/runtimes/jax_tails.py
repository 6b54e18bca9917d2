"""The operations between parametric layers in JAX. What nothing reads is left out, as XLA would leave it out."""

from typing import Any, Callable, Dict, Optional, Tuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from ...network import Layer
from ..tails import TailPlan
from .jax_layers import drop
from .jax_layout import axes, axis

Action = Callable[..., Array]  # a key for what is random, and the arrays


def tail_action(plan: TailPlan, layer: Layer) -> Action:
    return ACTIONS[plan.action](plan, layer)


def is_random(plan: TailPlan) -> bool:
    return plan.action == "dropout"


def _windows(rank: int, layer: Layer, kernel: int) -> Tuple[int, ...]:
    """One in each dimension, but for the spatial ones."""
    spatial = axes(tuple(range(2, rank)), rank, layer)
    return tuple(kernel if place in spatial else 1 for place in range(rank))


def _max_pool(plan: TailPlan, layer: Layer) -> Action:
    window = _windows(len(plan.shape), layer, plan.sizes[0])
    return lambda key, x: lax.reduce_window(x, -jnp.inf, lax.max, window, window, "VALID")


def _max_pool_same(plan: TailPlan, layer: Layer) -> Action:
    window = _windows(len(plan.shape), layer, plan.sizes[0])
    ones = (1,) * len(window)
    return lambda key, x: lax.reduce_window(x, -jnp.inf, lax.max, window, ones, "SAME")


def _adaptive_pool(plan: TailPlan, layer: Layer) -> Action:
    rank = len(plan.shape)
    places = axes(tuple(range(2, rank)), rank, layer)

    def pool(key: Any, x: Array) -> Array:
        for place, size in zip(places, plan.sizes):
            x = _averaged(x, place, size)
        return x

    return pool


def _averaged(x: Array, place: int, size: int) -> Array:
    whole = x.shape[place]
    if whole % size == 0:
        return x.reshape(*x.shape[:place], size, whole // size, *x.shape[place + 1 :]).mean(place + 1)
    edges = [(i * whole // size, -(-(i + 1) * whole // size)) for i in range(size)]
    return jnp.stack([lax.slice_in_dim(x, a, b, axis=place).mean(place) for a, b in edges], place)


def _mean(plan: TailPlan, layer: Layer) -> Action:
    return lambda key, x: x.mean(axes(plan.sizes, x.ndim, layer))


def last_entries(x: Array, dimensions: Tuple[int, ...], layer: Layer) -> Array:
    """The last entry along each dimension that goes: what is taken of a sequence's outputs."""
    for place in sorted(axes(dimensions, x.ndim, layer), reverse=True):
        x = lax.index_in_dim(x, -1, place, keepdims=False)
    return x


def _repeat(plan: TailPlan, layer: Layer) -> Action:
    rank = len(plan.shape)
    places = axes(tuple(range(2, rank)), rank, layer)

    def repeat(key: Any, x: Array) -> Array:
        for place in places:
            x = jnp.repeat(x, plan.sizes[0], axis=place)
        return x

    return repeat


def _concat(plan: TailPlan, layer: Layer) -> Action:
    return lambda key, x, y: jnp.concatenate((x, y), axis(1, x.ndim, layer))


def _softmax(plan: TailPlan, layer: Layer) -> Action:
    return lambda key, x: jax.nn.softmax(x, axis(x.ndim - 1, x.ndim, layer))


def _as_it_is(key: Optional[Array], x: Array) -> Array:
    return x


ACTIONS: Dict[str, Callable[[TailPlan, Layer], Action]] = {
    "aside": lambda plan, layer: _as_it_is,
    "draw": lambda plan, layer: _as_it_is,
    "copy": lambda plan, layer: _as_it_is,
    "relu": lambda plan, layer: lambda key, x: jax.nn.relu(x),
    "dropout": lambda plan, layer: drop,
    "add": lambda plan, layer: lambda key, x, y: x + y,
    "max_pool": _max_pool,
    "max_pool_same": _max_pool_same,
    "adaptive_pool": _adaptive_pool,
    "softmax": _softmax,
    "mean": _mean,
    "last": lambda plan, layer: lambda key, x: last_entries(x, plan.sizes, layer),
    "repeat": _repeat,
    "concat": _concat,
}
