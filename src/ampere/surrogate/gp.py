"""The Matern 5/2 kernel, and how near two layers of a kind are."""

from __future__ import annotations

import numpy as np

from .features import Array

SQRT5 = 5.0**0.5
SAME = 1e-5  # nearer than this is the same layer


def matern52(distance: Array) -> Array:
    """k(d) = (1 + sqrt5 d + 5/3 d^2) exp(-sqrt5 d): twice differentiable, as the paper chooses."""
    scaled = SQRT5 * distance
    return (1.0 + scaled + scaled * scaled / 3.0) * np.exp(-scaled)


def distances(a: Array, b: Array) -> Array:
    """Euclidean, between every row of a and every row of b."""
    squared = np.sum(a * a, axis=1)[:, None] + np.sum(b * b, axis=1)[None, :] - 2.0 * (a @ b.T)
    return np.sqrt(np.maximum(squared, 0.0))


def kernel(a: Array, b: Array, own: float = 0.0) -> Array:
    """Covariance of unit variance between rows that are already divided by their length scales.

    `own` is the share of the variance that a layer has with itself alone: which algorithm a runtime picks
    for a shape is not smooth.
    """
    return similarity(distances(a, b), own)


def similarity(distance: Array, own: float) -> Array:
    return (1.0 - own) * matern52(distance) + own * (distance < SAME)
