"""The time-based roofline: each operation takes as long as its arithmetic or its memory traffic, whichever is slower.

P  floating point operations a second      B  values moved a second
l  seconds to start an operation           c  seconds a step costs whatever is in it

t = c + sum over operations of  max(FLOPs / P, values / B) + l launches

P, B, l and c are fitted in logarithms (so they are positive) to the logarithm of what was measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from ampere.core import Layer, Network, work
from ampere.estimation.features import Array

from .method import Estimator, Evidence, Method

STARTS = ((1e10, 1e9, 5e-6, 1e-4), (1e11, 1e10, 1e-6, 1e-5), (1e12, 1e11, 1e-5, 1e-4))  # P, B, l, c
UPDATE_VALUES = 3  # a parameter and its gradient are read, the parameter is written


@lru_cache(maxsize=65536)
def operations(layer: Layer) -> tuple[tuple[float, float, float], ...]:
    """FLOPs, values moved and launches of the layer's operation, of each trailing operation, and of the update."""
    return tuple(_operations(layer))


def _operations(layer: Layer) -> Iterator[tuple[float, float, float]]:
    needed = work(layer)
    yield float(needed.flops), float(needed.values + needed.weights), float(needed.launches)
    for tail in layer.trailing:
        passes = 1 + int(tail.backward)
        yield 0.0, (tail.values_in + tail.values_out) * passes, float(passes)
    yield 0.0, float(UPDATE_VALUES * needed.parameters), float(needed.parameter_tensors)


class Roofs:
    """Many networks as one table of operations, so that a fit computes all of them at once."""

    def __init__(self, networks: Sequence[Network]) -> None:
        rows = [
            (index, count, *operation)
            for index, network in enumerate(networks)
            for layer, count in network.distinct.items()
            for operation in operations(layer)
        ]
        table = np.array(rows, dtype=float).reshape(-1, 5)
        self._count = len(networks)
        self._owner, self._times = table[:, 0].astype(int), table[:, 1]
        self._flops, self._values, self._launches = table[:, 2:].T

    def seconds(self, logarithms: Array) -> Array:
        peak, bandwidth, launch, constant = np.exp(logarithms)
        each = np.maximum(self._flops / peak, self._values / bandwidth) + launch * self._launches
        return constant + np.bincount(self._owner, each * self._times, self._count)


def fit(evidence: Evidence) -> Estimator:
    from scipy.optimize import least_squares

    roofs, logs = Roofs(evidence.networks), np.log(evidence.costs)

    def wrong(logarithms: Array) -> Array:
        return np.log(roofs.seconds(logarithms)) - logs

    bounds = np.log(1e-12), np.log(1e18)
    found = [least_squares(wrong, np.log(start), bounds=bounds, loss="soft_l1", f_scale=0.1) for start in STARTS]
    best = min(found, key=lambda fitted: float(fitted.cost)).x
    return lambda networks: Roofs(networks).seconds(best)


METHOD = Method("roofline", "time-based roofline fitted to the device", "networks", fit)
