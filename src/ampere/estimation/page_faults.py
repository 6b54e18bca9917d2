"""Memory that a loop gives back to the system and takes anew: how often, and what that costs.

    n   page faults of a step                    p   seconds of one, learnt from networks trained with both allocators
    v   values that the layers of a step move    u   page faults for each of them, of a usual network
    t   cost with the tuned allocator            s   cost with the system's

    s / t = a + p n / t

Which networks fault much is decided by sizes that no layer shows, and a little by lot. So costs are taken to u v page
faults before anything is fitted to them. Where the memory of a model's own step was followed, its estimate is taken
from u v to what that says: all pages of blocks that are too large for the heap, of others as many as real loops had of
what the allocator's model counts, and a part of the usual number (docs/decisions/0057, 0068).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ampere.core import Network, work
from ampere.core.allocations import FreshPages
from ampere.storage.profile import STEP

if TYPE_CHECKING:
    from .normalization import NormalizedCost

PRICE, PRICE_STDDEV = 2e-6, 2e-6  # seconds, before anything was measured
PAIR_STDDEV = 0.12  # relative, of such a pair around the line; one that is further away counts less
ROUNDS = 10  # of weighing
LEAST_LEFT = 0.3  # of a cost, whatever its page faults
# Parts of what is counted by lot, where memory was followed: in a step of convolutions, whose library takes memory that
# nobody sees, in one without any, and of the usual number.
OF_CONVOLUTIONS, OF_OTHERS, OF_USUAL = 0.9, 0.35, 0.05
ALL_CONVOLUTION = 0.5  # share of the values moved by convolutions from which on a step counts as one of convolutions
# Relative standard deviation of a script's page faults around the expected ones.
CONVOLUTIONS_BY_LOT, OTHERS_BY_LOT = 0.6, 0.9


class PageFaults(NamedTuple):
    """Page faults on a device with the system's allocator; none where nothing is known of them."""

    seconds: float = 0.0  # of one
    per_value: float = 0.0  # of a usual network

    def expected(self, network: Network, followed: FreshPages | None = None) -> FreshPages:
        """Page faults of a step; `followed` are those that the model of the allocator counts in it."""
        usual = self.per_value * _values(network)
        if followed is None:
            return FreshPages(0.0, usual)
        part = _between(OF_OTHERS, OF_CONVOLUTIONS, network)
        return FreshPages(followed.certain, part * followed.by_lot + OF_USUAL * usual)

    def beyond_usual(self, network: Network, followed: FreshPages | None) -> float:
        """Seconds of a step that its own page faults cost more than those of a usual network."""
        return self.seconds * (sum(self.expected(network, followed)) - sum(self.expected(network)))

    def stddev(self, network: Network, followed: FreshPages | None) -> float:
        """Seconds by which one script differs from another."""
        by_lot = OTHERS_BY_LOT if followed is None else _between(OTHERS_BY_LOT, CONVOLUTIONS_BY_LOT, network)
        return by_lot * self.seconds * self.expected(network, followed).by_lot

    def at_usual(self, costs: Sequence[NormalizedCost]) -> tuple[NormalizedCost, ...]:
        """The costs with the page faults that are usual for such networks."""

        def taken(cost: NormalizedCost) -> NormalizedCost:
            if cost.allocator != "system" or not self.seconds:
                return cost
            beyond = self.seconds * (cost.page_faults - sum(self.expected(cost.network)))
            return cost.scaled(max(LEAST_LEFT, 1.0 - beyond / cost.guiding_seconds))

        return tuple(map(taken, costs))


def page_faults_in(costs: Sequence[NormalizedCost]) -> PageFaults:
    """What networks tell that were trained with both allocators: a line near which a is 1."""
    tuned = {c.network: c.guiding_seconds for c in costs if c.allocator == "tuned" and c.stage == STEP}
    pairs = [(c, tuned[c.network]) for c in costs if c.allocator == "system" and c.network in tuned]
    if not any(c.page_faults for c, _ in pairs):
        return PageFaults()
    rows = [(c.guiding_seconds / t, c.page_faults / t, _values(c.network) / t) for c, t in pairs]
    ratios, faults, values = np.array(rows).T
    columns = np.column_stack([np.ones(len(pairs)), faults])
    before = np.array([1.0, PRICE]), np.diag([1.0, (PAIR_STDDEV / PRICE_STDDEV) ** 2])
    weights = np.ones(len(pairs))
    for _ in range(ROUNDS):
        weighted = columns * weights[:, None]
        line = np.linalg.solve(columns.T @ weighted + before[1], weighted.T @ ratios + before[1] @ before[0])
        weights = 1 / np.maximum(1.0, np.abs(ratios - columns @ line) / PAIR_STDDEV)
    return PageFaults(max(0.0, float(line[1])), float(values @ faults / (values @ values)))


@lru_cache(maxsize=4096)
def _values(network: Network) -> float:
    return float(sum(work(layer).values for layer in network.layers))


def _between(others: float, convolutions: float, network: Network) -> float:
    """A figure of steps without convolutions and one of steps of them, by how much of this one they are."""
    return others + (convolutions - others) * min(1.0, _convolution_share(network) / ALL_CONVOLUTION)


@lru_cache(maxsize=4096)
def _convolution_share(network: Network) -> float:
    """The part of all values that convolutions move."""
    of_convolutions = sum(work(layer).values for layer in network.layers if layer.kind.startswith("conv"))
    return of_convolutions / (_values(network) or 1.0)
