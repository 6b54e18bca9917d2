"""What widths cost: by Ampere's estimate with its doubt, or by FLOPs, which stand in for joules to compare with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np

from ampere.core import Layer, Network, work
from ampere.estimation.estimate import Estimate, Estimator
from ampere.estimation.features import Array

from .response import Response, Widths


class Price(Protocol):
    def of(self, network: Network) -> float:
        """Exactly."""

    def of_many(self, networks: Sequence[Network]) -> Array:
        """Quickly, to search with."""


class Joules:
    """Of an iteration, with so many standard deviations on top; to search, as large a share as of `typical`.

    `factor` is what measuring a network like these says of the estimate.
    """

    def __init__(
        self, estimator: Estimator, allocator: str, deviations: float, typical: Network, factor: float = 1.0
    ) -> None:
        self._estimator, self._allocator, self._deviations, self._factor = estimator, allocator, deviations, factor
        self._totals = estimator.totals(allocator)
        estimate = self.estimate(typical)
        self._on_top = 1.0 + deviations * estimate.stddev / estimate.joules

    def estimate(self, network: Network) -> Estimate:
        return self._estimator.estimate(network, self._allocator)

    def of(self, network: Network) -> float:
        estimate = self.estimate(network)
        return self._factor * (estimate.joules + self._deviations * estimate.stddev)

    def of_many(self, networks: Sequence[Network]) -> Array:
        return self._totals(networks) * (self._factor * self._on_top)


class Flops:
    """As if each FLOP of the model cost the same share of its joules."""

    def __init__(self, whole: Network, joules: float) -> None:
        self._joules_per_flop = joules / flops_of(whole)

    def of(self, network: Network) -> float:
        return self._joules_per_flop * flops_of(network)

    def of_many(self, networks: Sequence[Network]) -> Array:
        return np.array([self.of(network) for network in networks])


def flops_of(network: Network) -> float:
    return float(sum(map(_flops, network.layers)))


@lru_cache(maxsize=65536)
def _flops(layer: Layer) -> float:
    return float(work(layer).flops)


class Priced:
    """Widths and what they cost, each asked for once."""

    def __init__(self, response: Response, price: Price) -> None:
        self._response, self.price = response, price
        self._known: dict[Widths, float] = {}

    def __call__(self, widths: Widths) -> float:
        return self.many([widths])[0]

    def many(self, candidates: Sequence[Widths]) -> list[float]:
        new = [w for w in dict.fromkeys(candidates) if w not in self._known]
        if new:
            prices = self.price.of_many([self._response.network(w) for w in new])
            self._known.update(zip(new, map(float, prices), strict=True))
        return [self._known[w] for w in candidates]
