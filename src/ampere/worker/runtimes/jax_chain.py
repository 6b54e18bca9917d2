"""A described network as a function of its parameters, ready for jax.grad.

trained   parameters that the optimiser updates
loose     parameters and inputs that only get a gradient: of shared layers, and of what precedes a variant
kept      all else: frozen parameters, inputs without gradient, running statistics
"""

from typing import Any, Dict, NamedTuple, Optional, Tuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array

from ...network import Layer, Network
from ...network.kinds.kind import Shape
from ..operands import Operand
from ..wiring import Node, Read, Wiring, wire
from .jax_filling import filled, normal
from .jax_layers import build_layer
from .jax_layers import is_random as layer_is_random
from .jax_layout import stored
from .jax_loss import loss_of
from .jax_tails import is_random as tail_is_random
from .jax_tails import last_entries, tail_action

Arrays = Dict[str, Any]  # lists of them, and lone ones


class Variables(NamedTuple):
    trained: Arrays
    loose: Arrays
    kept: Arrays


class Chain:
    def __init__(self, network: Network, dtype: Any) -> None:
        if not network.layers:
            raise ValueError("the network has no layers")
        self._wiring: Wiring = wire(network)
        self._dtype = dtype
        nodes = self._wiring.nodes
        modules = {n: build_layer(node.layer, dtype) for n, node in enumerate(nodes) if node.tail is None}
        self._parts: Dict[int, Any] = {n: nnx.split(m, nnx.Param, ...) for n, m in modules.items()}
        self.random = any(tail_is_random(n.tail) if n.tail else layer_is_random(n.layer) for n in nodes)

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
            if node.tail is not None:
                values[node.writes] = tail_action(node.tail, node.layer)(own, *reads)
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
