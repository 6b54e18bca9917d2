"""A flax model by its own code, with what a described network offers: variables, and a loss of them."""

from typing import Any, Dict, List, Optional, Tuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array

from ...network.inputs import InputSpec
from .factory import failed, find_factory
from .jax_chain import Arrays, Variables
from .jax_filling import normal
from .jax_loss import loss_of


class OwnCode:
    random = False  # its random numbers are those of its own nnx.Rngs, which are among its variables

    def __init__(self, subject: Dict[str, Any], dtype: Any) -> None:
        self._subject, self._dtype = subject, dtype
        self._make = find_factory(str(subject["factory"]))
        self._parts: Any = ()
        self._given: List[Any] = []
        self._order: Any = None

    def variables(self, rng: np.random.Generator) -> Variables:
        """Made anew: the arrays of the step before were given away."""
        made = self._make(**(self._subject.get("arguments") or {}))
        model, example = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
        if not isinstance(model, nnx.Module):
            raise failed("{} made no flax.nnx.Module".format(self._subject["factory"]))
        model.train()  # type: ignore[no-untyped-call]
        self._parts = nnx.split(model, nnx.Param, ...)
        self._given, self._order = jax.tree.flatten(_called_with(self._subject, example, rng))
        trained, rest = (jax.tree.leaves(part) for part in self._parts[1:])
        arrays = [self._cast(jnp.asarray(value)) for value in self._given if hasattr(value, "shape")]
        return Variables({"weights": [self._cast(w) for w in trained]}, {}, {"rest": rest, "inputs": arrays})

    def loss(self, trained: Arrays, loose: Arrays, kept: Arrays, key: Optional[Array]) -> Tuple[Array, Arrays]:
        """The loss of a step, and all that is no parameter after it."""
        graph, *shapes = self._parts
        leaves = (trained["weights"], kept["rest"])
        parts = [jax.tree.unflatten(jax.tree.structure(tree), filled) for tree, filled in zip(shapes, leaves)]
        model = nnx.merge(graph, *parts)
        arrays = iter(kept["inputs"])
        given = [next(arrays) if hasattr(value, "shape") else value for value in self._given]
        positional, named = jax.tree.unflatten(self._order, given)
        ends = [x for x in jax.tree.leaves(model(*positional, **named)) if jnp.issubdtype(x.dtype, jnp.floating)]
        if not ends:
            raise failed("the model returns no array of floating-point numbers: there is nothing to train towards")
        return loss_of(ends[0], ends[1:]), {"rest": jax.tree.leaves(nnx.state(model, nnx.Not(nnx.Param)))}

    def _cast(self, array: Array) -> Array:
        """float32 stands for the types that the model has."""
        lower = self._dtype != jnp.float32 and jnp.issubdtype(array.dtype, jnp.floating)
        return array.astype(self._dtype) if lower else array


def _called_with(subject: Dict[str, Any], example: Any, rng: np.random.Generator) -> Tuple[Any, Dict[str, Any]]:
    specs = subject.get("inputs")
    if specs is None and example is None:
        raise failed("{} tells no example inputs; give their shapes".format(subject["factory"]))
    given = example if specs is None else tuple(_array(InputSpec.from_json(spec), rng) for spec in specs)
    if isinstance(given, dict):
        return (), given
    return tuple(given) if isinstance(given, (list, tuple)) else (given,), {}


def _array(spec: InputSpec, rng: np.random.Generator) -> Array:
    if spec.dtype.startswith("float"):
        return normal(rng, spec.shape, jnp.dtype(spec.dtype))
    high = 2 if spec.high is None else spec.high
    return jnp.asarray(rng.integers(0, high, spec.shape).astype(spec.dtype))
