"""Networks as matrices, and the prior covariance of their costs.

rows     (networks, quantities)   how much of each quantity a network needs (FLOPs, values, launches...)
weights  (networks, positions)    for each kind: physics cost of the layers at a position, times how often they run;
                                  mostly zeros
physics  (networks,)              rows . prices
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from ampere.core import Network

from .features import STEP, Array, network_features
from .gaussian_process import BLOCK, kernel
from .hyperparameters import Hyperparameters

ALLOCATOR_MEAN_STDDEV = 0.15  # relative, of what the system's allocator adds to all networks alike
NETWORK_OCTAVES = 3.0  # length scale of a whole network's deviation
ALLOCATOR_OCTAVES = 2.0  # length scale of what the system's allocator adds


class DesignMatrix:
    """Several networks as the matrices of the module's docstring."""

    def __init__(self, networks: Sequence[Network], system: Array, prices: Array, width: int) -> None:
        features = [network_features(network, width) for network in networks]
        self.system = system
        self.rows = np.array([f.row for f in features]).reshape(len(features), len(STEP))
        self.places = np.array([f.position for f in features]).reshape(len(features), 3)
        self.physics = self.rows @ prices
        slots: dict[str, dict[bytes, int]] = {}
        entries: dict[str, list[tuple[int, int, float]]] = {}
        for i, f in enumerate(features):
            for (kind, position), cost in zip(f.places, (f.counts * (f.rows @ prices)).tolist(), strict=True):
                of_kind = slots.setdefault(kind, {})
                entries.setdefault(kind, []).append((i, of_kind.setdefault(position, len(of_kind)), cost))
        self.positions = {k: np.array([np.frombuffer(x) for x in of_kind]) for k, of_kind in slots.items()}
        self.weights = {k: _sparse(entries[k], (len(features), len(slots[k]))) for k in slots}


def _sparse(entries: list[tuple[int, int, float]], shape: tuple[int, int]) -> csr_array:
    rows, columns, values = zip(*entries, strict=True)
    return csr_array((values, (rows, columns)), shape=shape)


def scale(kind: str, positions: Array, hyper: Hyperparameters) -> Array:
    """Positions in units of the length scales."""
    return positions / hyper.lengths(kind, positions.shape[-1])


def whole_covariance(a: Array, b: Array, system_a: Array, system_b: Array, hyper: Hyperparameters) -> Array:
    """Relative covariance of whole networks' deviations and of what the system's allocator adds."""
    shared = hyper.network**2 * kernel(a / NETWORK_OCTAVES, b / NETWORK_OCTAVES)
    allocator = ALLOCATOR_MEAN_STDDEV**2 + hyper.allocator**2 * kernel(a / ALLOCATOR_OCTAVES, b / ALLOCATOR_OCTAVES)
    return shared + np.outer(system_a, system_b) * allocator


def covariance(a: DesignMatrix, b: DesignMatrix, price_stddev: Array, hyper: Hyperparameters) -> Array:
    """Prior covariance between the costs of two sets of networks, without noise."""
    total = whole_covariance(a.places, b.places, a.system, b.system, hyper) * np.outer(a.physics, b.physics)
    total += (a.rows * price_stddev) @ (b.rows * price_stddev).T
    for kind in a.weights.keys() & b.weights.keys():
        total += hyper.residual_of(kind) ** 2 * _shared(a, b, kind, hyper)
    return total


def _shared(a: DesignMatrix, b: DesignMatrix, kind: str, hyper: Hyperparameters) -> Array:
    """Covariance through the layers of a kind. A kernel of all positions at once would not fit into the memory."""
    rows, columns = scale(kind, a.positions[kind], hyper), scale(kind, b.positions[kind], hyper)
    if len(rows) <= BLOCK:
        return np.asarray((a.weights[kind] @ kernel(rows, columns, hyper.own)) @ b.weights[kind].T)
    weights, others = a.weights[kind].tocsc(), b.weights[kind].T
    total = np.zeros((weights.shape[0], others.shape[1]))
    for first in range(0, len(rows), BLOCK):
        near = kernel(rows[first : first + BLOCK], columns, hyper.own)
        total += weights[:, first : first + BLOCK] @ (near @ others)
    return total
