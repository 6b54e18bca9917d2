"""The loss that every runtime here trains with."""

from typing import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

LABELS = np.random.default_rng(0).integers(0, 1 << 30, 1 << 16)


def loss_of(output: Array, others: Sequence[Array]) -> Array:
    """As in PyTorch: cross entropy for class scores, else the mean of squares."""
    if output.ndim == 2 and output.shape[1] > 1 and not others:
        labels = jnp.asarray(np.resize(LABELS, output.shape[0]) % output.shape[1])
        scores = jax.nn.log_softmax(output)
        return -jnp.take_along_axis(scores, labels[:, None], axis=1).mean()
    squares = [jnp.square(value).mean() for value in (output, *others)]
    return sum(squares[1:], squares[0])
