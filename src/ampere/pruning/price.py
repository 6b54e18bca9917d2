"""What widths cost: by Ampere's estimate with its doubt, or by FLOPs, which stand in for joules to compare with."""

from __future__ import annotations

from typing import Protocol

from ampere.estimation import Estimator
from ampere.network import Network, work

from .response import Response, Widths


class Price(Protocol):
    def of(self, network: Network) -> float: ...


class Joules:
    """Of an iteration, with so many standard deviations on top."""

    def __init__(self, estimator: Estimator, allocator: str, deviations: float) -> None:
        self._estimator, self._allocator, self._deviations = estimator, allocator, deviations

    def of(self, network: Network) -> float:
        estimate = self._estimator.estimate(network, self._allocator)
        return estimate.joules + self._deviations * estimate.stddev


class Flops:
    """As if each FLOP of the model cost the same share of its joules."""

    def __init__(self, whole: Network, joules: float) -> None:
        self._joules_per_flop = joules / flops_of(whole)

    def of(self, network: Network) -> float:
        return self._joules_per_flop * flops_of(network)


def flops_of(network: Network) -> float:
    return float(sum(work(layer).flops for layer in network.layers))


class Priced:
    """Widths and what they cost, each asked for once."""

    def __init__(self, response: Response, price: Price) -> None:
        self._response, self.price = response, price
        self._known: dict[Widths, float] = {}

    def __call__(self, widths: Widths) -> float:
        if widths not in self._known:
            self._known[widths] = self.price.of(self._response.network(widths))
        return self._known[widths]
