"""The Matern 5/2 kernel: the covariance of two layers of a kind, by their distance."""

from __future__ import annotations

import numpy as np

from .features import Array

SQRT5 = 5.0**0.5
BLOCK = 512  # rows of a covariance that are in memory at a time
IN_CACHE = 32_768  # numbers of a covariance that stay near the processor while they are worked on
SAME = 1e-5  # at a smaller distance two layers are the same


def matern52(distance: Array) -> Array:
    """The Matern 5/2 kernel k(d) = (1 + sqrt5 d + 5/3 d^2) exp(-sqrt5 d), which the paper uses."""
    scaled = SQRT5 * distance
    value = scaled / 3.0  # in place from here on: a new array of this size costs more than the arithmetic
    value += 1.0
    value *= scaled
    value += 1.0
    np.negative(scaled, out=scaled)
    value *= np.exp(scaled, out=scaled)
    return value


def distances(a: Array, b: Array) -> Array:
    """Euclidean distances between every row of a and every row of b."""
    squared = a @ (-2.0 * b.T)
    squared += np.sum(a * a, axis=1)[:, None]
    squared += np.sum(b * b, axis=1)[None, :]
    np.maximum(squared, 0.0, out=squared)
    return np.asarray(np.sqrt(squared, out=squared))


def kernel(a: Array, b: Array, own: float = 0.0) -> Array:
    """Covariance, of unit variance, between rows that are already divided by their length scales.

    `own` is the share of the variance that a layer shares with no other: which algorithm a runtime chooses
    for a shape does not change smoothly.
    """
    return similarity(distances(a, b), own)


def similarity(distance: Array, own: float) -> Array:
    """Covariance, of unit variance, at each distance."""
    value = matern52(distance)
    value *= 1.0 - own
    value[distance < SAME] += own
    return value


def near_sums(positions: Array, weights: Array, own: float) -> Array:
    """Covariance of each row with the weighted sum of all rows."""
    rows = max(1, IN_CACHE // max(1, len(positions)))
    sums = np.zeros(len(positions))
    for first in range(0, len(positions), rows):  # each pair once
        end = first + rows
        near = kernel(positions[first:end], positions[first:], own)
        sums[first:end] += near @ weights[first:]
        sums[end:] += weights[first:end] @ near[:, rows:]
    return sums
