"""Parameters from shapes alone, drawn with NumPy: JAX would compile a program to draw each shape."""

from typing import Any, List, Tuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

ONES = ("scale", "var")
ZEROS = ("bias", "state_bias", "mean")


def filled(shapes: Any, rng: np.random.Generator) -> List[Array]:
    """The leaves of a tree, with values."""
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
