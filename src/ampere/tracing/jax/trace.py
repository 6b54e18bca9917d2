"""A flax model becomes a Network: its step is turned into equations, of which none is run."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from ampere.core import Layer, Network
from ampere.core.errors import ModelError
from ampere.core.trailing_ops import usual_loss

from .equations import Equation, Value, flattened, value_of
from .grouping import Grouping
from .layers import Layers, notes_of
from .scopes import Calls, named_calls

LONGEST_MESSAGE = 300


class Step:
    """The model as a function of its parameters; a copy, in training mode."""

    def __init__(self, model: nnx.Module, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
        parts: Any = nnx.split(model, nnx.Param, ...)
        self._definition, self._parameters, self._rest = parts
        self._kind = type(model).__name__
        self._given, self._order = jax.tree_util.tree_flatten((positional, named))
        leaves = jax.tree_util.tree_flatten_with_path(self._parameters)[0]
        self.sizes = {_name(path): int(leaf.size) for path, leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating)}
        if not self.sizes:
            raise ModelError("the model has no nnx.Param to train")
        self.calls: Calls = {}
        self.output: Value = Value((), True)

    @property
    def arrays(self) -> list[Any]:
        """The arrays that the model is called with; flags and numbers stay as they are."""
        return [value for value in self._given if hasattr(value, "shape")]

    def run(self, parameters: Any, rest: Any, arrays: list[Any]) -> Any:
        model: Any = nnx.merge(self._definition, parameters, rest, copy=True)
        model.train()
        traced = iter(arrays)
        given = [next(traced) if hasattr(value, "shape") else value for value in self._given]
        positional, named = jax.tree_util.tree_unflatten(self._order, given)
        with named_calls(model) as calls:
            output = model(*positional, **named)
        self.calls = calls
        tensors = [x for x in jax.tree_util.tree_leaves(output) if jnp.issubdtype(x.dtype, jnp.floating)]
        if not tensors:
            raise ModelError("the model returns no array of floating-point numbers: there is nothing to train towards")
        self.output = value_of(tensors[0])
        return tensors

    def loss(self, *arguments: Any) -> Any:
        return sum(jnp.mean(jnp.square(tensor)) for tensor in self.run(*arguments))

    def equations(self, function: Any) -> list[Equation]:
        arguments = (self._parameters, self._rest, self.arrays)
        try:
            closed = jax.make_jaxpr(function)(*arguments)
        except ModelError:
            raise
        except Exception as problem:
            raise _explained(self._kind, problem, self.arrays) from problem
        return flattened(closed, [self._input(path, leaf) for path, leaf in _leaves(arguments)])

    def _input(self, path: Any, leaf: Any) -> Value:
        value, name = value_of(leaf), _name(path[1:])
        if path[0].idx == 0 and name in self.sizes:
            value.grad, value.owners = True, frozenset((name,))
        return value


def _explained(kind: str, problem: Exception, arrays: list[Any]) -> ModelError:
    line = next(iter(str(problem).strip().splitlines()), "")[:LONGEST_MESSAGE].rstrip(".:")
    shapes = " and ".join("x".join(map(str, array.shape)) for array in arrays)
    places = "flax has channels last; " if any(len(array.shape) > 2 for array in arrays) else ""
    return ModelError(
        f"{kind} on an input of {shapes} raised {type(problem).__name__}: {line}: "
        f"{places}call it on its input in Python by itself first"
    )


def _leaves(arguments: Any) -> list[Any]:
    return list(jax.tree_util.tree_flatten_with_path(arguments)[0])


def _name(path: Any) -> str:
    """`layers.0.kernel` of a parameter's place among the others."""
    keys = [getattr(key, "key", getattr(key, "idx", None)) for key in path]
    return ".".join(str(key) for key in keys if key is not None)


def trace(model: nnx.Module, inputs: Any, *, name: str = "") -> Network:
    """The layers of one training step of `model` on `inputs`, in the order in which they run."""
    positional, named = ((), inputs) if isinstance(inputs, dict) else (tuple(inputs), {})
    step = Step(model, positional, named)
    forward = step.equations(step.run)
    backward: dict[str, list[Equation]] = defaultdict(list)
    for equation in step.equations(jax.grad(step.loss)):
        if equation.backward:
            backward[equation.path].append(equation)
    batch = next((int(x.shape[0]) for x in step.arrays if x.shape), 1)
    layers = Layers(batch, step.sizes, backward)
    groups = Grouping(forward, step.calls).found()
    built = layers.build(groups, step.calls)
    if not built:
        raise ModelError("the model computes nothing that could be trained")
    idle = sorted(set(step.sizes) - layers.counted)
    network = (*built[:-1], _with_loss(built[-1], step.output))
    return Network(network, batch, name, notes_of([group.path for group in groups], built, forward, backward, idle))


def _with_loss(last: Layer, output: Value) -> Layer:
    return replace(last, trailing=(*last.trailing, *usual_loss(output.shape)))
