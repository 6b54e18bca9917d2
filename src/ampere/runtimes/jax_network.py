"""A described network as a JAX function of its parameters."""

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array, lax

from ampere.core import Layer, Network
from ampere.core.kinds.kind import Operand, Shape
from ampere.core.trailing_ops import TrailingPlan
from ampere.core.wiring import Node, Read, Wiring, wire

from .jax_layers import axes, axis, build_layer, drop, stored
from .jax_layers import is_random as layer_is_random

Action = Callable[..., Array]  # a key for what is random, and the arrays


def trailing_action(plan: TrailingPlan, layer: Layer) -> Action:
    """A trailing operation in JAX. What nothing reads is left out, as XLA would leave it out."""
    return ACTIONS[plan.action](plan, layer)


def is_random(plan: TrailingPlan) -> bool:
    return plan.action == "dropout"


def _windows(rank: int, layer: Layer, kernel: int) -> Tuple[int, ...]:
    """One in each dimension, but for the spatial ones."""
    spatial = axes(tuple(range(2, rank)), rank, layer)
    return tuple(kernel if place in spatial else 1 for place in range(rank))


def _max_pool(plan: TrailingPlan, layer: Layer) -> Action:
    window = _windows(len(plan.shape), layer, plan.sizes[0])
    return lambda key, x: lax.reduce_window(x, -jnp.inf, lax.max, window, window, "VALID")


def _max_pool_same(plan: TrailingPlan, layer: Layer) -> Action:
    window = _windows(len(plan.shape), layer, plan.sizes[0])
    ones = (1,) * len(window)
    return lambda key, x: lax.reduce_window(x, -jnp.inf, lax.max, window, ones, "SAME")


def _adaptive_pool(plan: TrailingPlan, layer: Layer) -> Action:
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


def _mean(plan: TrailingPlan, layer: Layer) -> Action:
    return lambda key, x: x.mean(axes(plan.sizes, x.ndim, layer))


def last_entries(x: Array, dimensions: Tuple[int, ...], layer: Layer) -> Array:
    """The last entry along each dimension that goes: what is taken of a sequence's outputs."""
    for place in sorted(axes(dimensions, x.ndim, layer), reverse=True):
        x = lax.index_in_dim(x, -1, place, keepdims=False)
    return x


def _repeat(plan: TrailingPlan, layer: Layer) -> Action:
    rank = len(plan.shape)
    places = axes(tuple(range(2, rank)), rank, layer)

    def repeat(key: Any, x: Array) -> Array:
        for place in places:
            x = jnp.repeat(x, plan.sizes[0], axis=place)
        return x

    return repeat


def _concat(plan: TrailingPlan, layer: Layer) -> Action:
    return lambda key, x, y: jnp.concatenate((x, y), axis(1, x.ndim, layer))


def _softmax(plan: TrailingPlan, layer: Layer) -> Action:
    return lambda key, x: jax.nn.softmax(x, axis(x.ndim - 1, x.ndim, layer))


def _as_it_is(key: Optional[Array], x: Array) -> Array:
    return x


ACTIONS: Dict[str, Callable[[TrailingPlan, Layer], Action]] = {
    "aside": lambda plan, layer: _as_it_is,
    "draw": lambda plan, layer: _as_it_is,
    "copy": lambda plan, layer: _as_it_is,
    "relu": lambda plan, layer: lambda key, x: jax.nn.relu(x),
    "gelu": lambda plan, layer: lambda key, x: jax.nn.gelu(x, approximate=False),
    "dropout": lambda plan, layer: drop,
    "add": lambda plan, layer: lambda key, x, y: x + y,
    "max_pool": _max_pool,
    "max_pool_same": _max_pool_same,
    "adaptive_pool": _adaptive_pool,
    "softmax": _softmax,
    "mean": _mean,
    "last": lambda plan, layer: lambda key, x: last_entries(x, plan.sizes, layer),
    "repeat": _repeat,
    "enlarge": _repeat,
    "concat": _concat,
}


ONES = ("scale", "var")
ZEROS = ("bias", "state_bias", "mean")


def filled(shapes: Any, rng: np.random.Generator) -> List[Array]:
    """The leaves of a tree with values, drawn with NumPy: JAX would compile a program to draw each shape."""
    leaves = jax.tree_util.tree_leaves_with_path(shapes)
    return [_drawn(_name(path), leaf, rng) for path, leaf in leaves]


def normal(rng: np.random.Generator, shape: Tuple[int, ...], dtype: Any, scale: float = 1.0) -> Array:
    return jnp.asarray(rng.standard_normal(shape, dtype=np.float32) * np.float32(scale), dtype)


def _drawn(name: str, leaf: Any, rng: np.random.Generator) -> Array:
    if name in ONES or name in ZEROS:
        return jnp.asarray(np.full(leaf.shape, float(name in ONES), np.float32), leaf.dtype)
    reads = int(np.prod(leaf.shape[:-1]))  # each output is a sum over so many, or over fewer
    return normal(rng, leaf.shape, leaf.dtype, max(1, reads) ** -0.5)


def _name(path: Tuple[Any, ...]) -> str:
    """The last part of the path that is a name."""
    names = [str(getattr(part, "key", "")) for part in path]
    return next(name for name in reversed(names) if name)


Arrays = Dict[str, Any]  # each an array, or a list of them


class Variables(NamedTuple):
    """All arrays of a network."""

    trained: Arrays  # parameters that the optimizer updates
    loose: Arrays  # parameters and inputs that only get a gradient: of shared layers, and of what precedes a variant
    kept: Arrays  # all else: frozen parameters, inputs without gradient, running statistics


class Chain:
    """A described network as a function of its parameters, ready for jax.grad."""

    def __init__(self, network: Network, dtype: Any) -> None:
        if not network.layers:
            raise ValueError("the network has no layers")
        self._wiring: Wiring = wire(network)
        self._dtype = dtype
        nodes = self._wiring.nodes
        modules = {n: build_layer(node.layer, dtype) for n, node in enumerate(nodes) if node.trailing is None}
        self._parts: Dict[int, Any] = {n: nnx.split(m, nnx.Param, ...) for n, m in modules.items()}
        self.random = any(is_random(n.trailing) if n.trailing else layer_is_random(n.layer) for n in nodes)

    def variables(self, rng: np.random.Generator) -> Variables:
        """Made anew, the same for the same generator."""
        trained: Arrays = {}
        loose: Arrays = {}
        kept: Arrays = {}
        for number in self._parts:
            layer = self._wiring.nodes[number].layer
            parameters, rest = self._parts[number][1:]
            place = trained if layer.config.get("parameters") != 0 else loose
            (place if layer.trainable else kept)[f"weights {number}"] = filled(parameters, rng)
            kept[f"rest {number}"] = filled(rest, rng)
        for fresh in self._wiring.fresh:
            (loose if fresh.operand.grad else kept)[f"input {fresh.value}"] = self._input(
                fresh.value, fresh.operand, rng
            )
        return Variables(trained, loose, kept)

    def loss(self, trained: Arrays, loose: Arrays, kept: Arrays, key: Optional[Array]) -> Tuple[Array, Arrays]:
        """The loss of a step, and the running statistics after it."""
        every = {**trained, **loose, **kept}
        values = {fresh.value: every[f"input {fresh.value}"] for fresh in self._wiring.fresh}
        keys = jax.random.split(key, len(self._wiring.nodes)) if key is not None else None
        after: Arrays = {}
        for number, node in enumerate(self._wiring.nodes):
            reads = [self._read(read, values[read.value], node.layer) for read in node.reads]
            own = None if keys is None else keys[number]
            if node.trailing is not None:
                values[node.writes] = trailing_action(node.trailing, node.layer)(own, *reads)
                continue
            module = self._merged(number, every)
            values[node.writes] = module(own, *reads)
            after[f"rest {number}"] = jax.tree.leaves(nnx.state(module, nnx.Not(nnx.Param)))
        ends = [values[value] for value in self._wiring.dangling]
        return loss_of(values[self._wiring.nodes[-1].writes], ends), after

    def _merged(self, number: int, every: Arrays) -> Any:
        """The module with these arrays in it."""
        graph, *shapes = self._parts[number]
        filled_in = (every[f"weights {number}"], every[f"rest {number}"])
        trees = [jax.tree.unflatten(jax.tree.structure(tree), leaves) for tree, leaves in zip(shapes, filled_in)]
        return nnx.merge(graph, *trees)

    def _read(self, read: Read, value: Array, reader: Layer) -> Array:
        wanted: Shape = stored(read.shape, reader)
        if read.parts > 1:
            return value.reshape(read.parts, *wanted)[read.part]
        if read.last_of:
            value = last_entries(value, read.last_of, self._writer(read.value))
        return value.reshape(wanted)

    def _writer(self, value: int) -> Layer:
        """The layer whose layout a value has; that of its first reader where it is an input."""
        nodes: Tuple[Node, ...] = self._wiring.nodes
        makers = [node.layer for node in nodes if node.writes == value]
        return next(iter([*makers, *(n.layer for n in nodes if any(r.value == value for r in n.reads))]))

    def _input(self, value: int, operand: Operand, rng: np.random.Generator) -> Array:
        shape = stored(operand.shape, self._writer(value))
        if operand.tokens:
            return jnp.asarray(rng.integers(0, operand.tokens, shape, dtype=np.int32))
        return normal(rng, shape, self._dtype)


LABELS = np.random.default_rng(0).integers(0, 1 << 30, 1 << 16)


def loss_of(output: Array, others: Sequence[Array]) -> Array:
    """As in PyTorch: cross entropy for class scores, else the mean of squares."""
    if output.ndim == 2 and output.shape[1] > 1 and not others:
        labels = jnp.asarray(np.resize(LABELS, output.shape[0]) % output.shape[1])
        scores = jax.nn.log_softmax(output)
        return -jnp.take_along_axis(scores, labels[:, None], axis=1).mean()
    squares = [jnp.square(value).mean() for value in (output, *others)]
    return sum(squares[1:], squares[0])
