"""Networks as matrices, and the prior covariance of their costs.

rows     (networks, quantities)   how much of each quantity a network needs (FLOPs, values, launches...)
weights  (networks, positions)    for each kind: physics cost of the layers at a position, times how often they run;
                                  mostly zeros
physics  (networks,)              rows . prices
wholes                            what a network's deviation from its layers depends on
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ampere.core import Network

from .features import FLOPS, STEP, VALUES, Array, network_features
from .gaussian_process import BLOCK, kernel
from .hyperparameters import Hyperparameters
from .prices import SPEED_GROUPS

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ALLOCATOR_MEAN_STDDEV = 0.05  # relative, of what the system's allocator adds to all networks alike
# Relative, of what a user's loop adds to overheads, to arithmetic and to memory each, page faults apart: steps that
# follow each other find their data in the caches.
LOOP_STDDEV = 0.05
NETWORK_OCTAVES = 3.0  # length scale of a whole network's deviation
ALLOCATOR_OCTAVES = 2.0  # length scale of what the system's allocator adds


SUMMED = 3 + SPEED_GROUPS.shape[1]  # what `layer_sums` has of each layer


class Wholes(NamedTuple):
    """Networks as wholes, one a row."""

    places: Array  # octaves of arithmetic, of memory moved and of depth
    shares: Array  # of overheads, arithmetic and memory in their physics cost
    system: Array  # 1 with the system's allocator, else 0


class DesignMatrix:
    """Several networks as the matrices of the module's docstring."""

    def __init__(self, networks: Sequence[Network], system: Array, prices: Array, width: int) -> None:
        features = [network_features(network, width) for network in networks]
        rows = np.array([f.row for f in features]).reshape(len(features), len(STEP))
        places = np.array([f.position for f in features]).reshape(len(features), 3)
        slots: dict[str, dict[bytes, int]] = {}
        entries: dict[str, list[tuple[int, int, float]]] = {}
        for i, f in enumerate(features):
            for (kind, position), cost in zip(f.places, (f.counts * (f.rows @ prices)).tolist(), strict=True):
                of_kind = slots.setdefault(kind, {})
                entries.setdefault(kind, []).append((i, of_kind.setdefault(position, len(of_kind)), cost))
        positions = {k: np.array([np.frombuffer(x) for x in of_kind]) for k, of_kind in slots.items()}
        self._set(rows, places, system, prices, positions, {k: np.array(entries[k]) for k in slots})

    def _set(
        self,
        rows: Array,
        places: Array,
        system: Array,
        prices: Array,
        positions: dict[str, Array],
        entries: dict[str, Array],
    ) -> None:
        """`entries` are the weights that are not zero: network, position, cost."""
        self.rows, self.physics, self.system = rows, rows @ prices, system
        self.wholes = Wholes(places, group_shares(rows, prices), system)
        self.positions, self._entries = positions, entries

    def arrays(self) -> dict[str, Array]:
        """All that does not follow from the rest, to be kept in a file."""
        named = {"positions": self.positions, "entries": self._entries}
        kinds = {f"{what}.{kind}": each for what, of in named.items() for kind, each in of.items()}
        return {"rows": self.rows, "places": self.wholes.places, **kinds}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], system: Array, prices: Array) -> DesignMatrix:
        """What `arrays` returned, as it was."""
        made = cls.__new__(cls)
        of = {
            what: {k.removeprefix(what): each for k, each in arrays.items() if k.startswith(what)}
            for what in ("positions.", "entries.")
        }
        made._set(arrays["rows"], arrays["places"], system, prices, of["positions."], of["entries."])
        return made

    @cached_property
    def weights(self) -> dict[str, csr_array]:
        from scipy.sparse import csr_array

        return {
            kind: csr_array(
                (costs, (networks.astype(np.intc), positions.astype(np.intc))),
                (len(self.rows), len(self.positions[kind])),
            )
            for kind, (networks, positions, costs) in ((kind, e.T) for kind, e in self._entries.items())
        }

    def pulls(self, kind: str, of_networks: Array) -> Array:
        """The sum over networks of what each has, times its weight at each position of a kind."""
        networks, positions, costs = self._entries[kind].T
        weighted = costs * of_networks[networks.astype(np.intp)]
        return np.asarray(np.bincount(positions.astype(np.intp), weighted, len(self.positions[kind])), dtype=np.float64)

    def dense_weights(self, kind: str) -> Array:
        """The weights of a kind, zeros included."""
        networks, positions, costs = self._entries[kind].T
        found = np.zeros((len(self.rows), len(self.positions[kind])))
        np.add.at(found, (networks.astype(np.intp), positions.astype(np.intp)), costs)
        return found


def group_shares(rows: Array, prices: Array) -> Array:
    """The shares of overheads, arithmetic and memory in the physics cost of each row."""
    groups = (rows * prices) @ SPEED_GROUPS
    return np.asarray(groups / np.sum(groups, axis=1, keepdims=True))


def layer_sums(means: Array, rows: Array, prices: Array) -> Array:
    """What networks sum of each layer: its mean, arithmetic, memory moved, and the physics cost of each group."""
    return np.column_stack([means, rows @ FLOPS, rows @ VALUES, (rows * prices) @ SPEED_GROUPS])


def summed(sums: Array, depth: Any, step: float, system: bool) -> tuple[Array, Wholes]:
    """Networks from the sums over their layers and the physics cost of a step: their physics cost, and as wholes."""
    groups = sums[:, 3:] + step * SPEED_GROUPS[np.flatnonzero(STEP)]
    physics, depths = groups.sum(axis=1), np.broadcast_to(depth, len(sums))
    places = np.column_stack([np.log2(1e3 + sums[:, 1:3]), np.log2(1.0 + depths)])
    return physics, Wholes(places, groups / physics[:, None], np.full(len(sums), float(system)))


def scale(kind: str, positions: Array, hyper: Hyperparameters) -> Array:
    """Positions in units of the length scales."""
    return positions / hyper.lengths(kind, positions.shape[-1])


def whole_covariance(a: Wholes, b: Wholes, hyper: Hyperparameters) -> Array:
    """Relative covariance of whole networks' deviations and of what a user's loop adds."""
    shared = hyper.network**2 * kernel(a.places / NETWORK_OCTAVES, b.places / NETWORK_OCTAVES)
    alike = hyper.allocator**2 * kernel(a.places / ALLOCATOR_OCTAVES, b.places / ALLOCATOR_OCTAVES)
    return shared + np.outer(a.system, b.system) * (loop_covariance(a, b) + alike)


def own_covariance(wholes: Wholes, hyper: Hyperparameters) -> Array:
    """The diagonal of `whole_covariance` of networks with themselves."""
    loop = ALLOCATOR_MEAN_STDDEV**2 + LOOP_STDDEV**2 * np.sum(wholes.shares**2, axis=1) + hyper.allocator**2
    return np.asarray(hyper.network**2 + wholes.system * loop)


def loop_covariance(a: Wholes, b: Wholes) -> Array:
    """Relative covariance of what a user's loop adds, but for a network's own part."""
    return np.asarray(ALLOCATOR_MEAN_STDDEV**2 + LOOP_STDDEV**2 * (a.shares @ b.shares.T))


def covariance(a: DesignMatrix, b: DesignMatrix, price_stddev: Array, hyper: Hyperparameters) -> Array:
    """Prior covariance between the costs of two sets of networks, without noise."""
    total = whole_covariance(a.wholes, b.wholes, hyper) * np.outer(a.physics, b.physics)
    total += (a.rows * price_stddev) @ (b.rows * price_stddev).T
    for kind in [kind for kind in a.weights if kind in b.weights]:  # in order: sums are the same to the last bit
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
