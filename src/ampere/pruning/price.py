"""What widths cost: widths -> network, by arithmetic -> joules of Ampere's estimate, or FLOPs to compare with.

How the layers depend on the widths of groups is learnt from one trace a group. Channels, and the values that trailing
operations read and write, are straight lines in every width:

    number(widths) = number(full) - sum over groups of slope * (full width - width)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from ampere.core import Layer, Network, work
from ampere.estimation.estimate import Estimate
from ampere.estimation.estimator import Estimator
from ampere.estimation.features import Array

Widths = tuple[int, ...]


@dataclass(frozen=True)
class Probe:
    """The network when one group has `removed` units less."""

    network: Network
    removed: int


class Response:
    """The network at any widths of its groups."""

    def __init__(self, base: Network, full: Widths, probes: Sequence[Probe]) -> None:
        self.base, self.full = base, full
        self._numbers = [np.array(_numbers(layer)) for layer in base.layers]
        self._slopes: list[dict[int, Array]] = []
        for index, numbers in enumerate(self._numbers):
            changes = [(numbers - np.array(_numbers(p.network.layers[index]))) / p.removed for p in probes]
            self._slopes.append({group: change for group, change in enumerate(changes) if np.any(change)})
        self._made: dict[tuple[int, ...], Layer] = {}

    def network(self, widths: Widths) -> Network:
        return replace(self.base, layers=tuple(self._layer(i, widths) for i in range(len(self._numbers))))

    def _layer(self, index: int, widths: Widths) -> Layer:
        """Cached by the widths that the layer depends on: a step of a search changes few of them."""
        slopes = self._slopes[index]
        key = (index, *(widths[group] for group in slopes))
        if key not in self._made:
            numbers = self._numbers[index].copy()
            for group, slope in slopes.items():
                numbers -= slope * (self.full[group] - widths[group])
            self._made[key] = _with_numbers(self.base.layers[index], numbers.tolist())
        return self._made[key]


def comparable(a: Network, b: Network) -> bool:
    """Whether two networks differ in numbers only."""
    return len(a.layers) == len(b.layers) and all(
        one.kind == other.kind and len(_numbers(one)) == len(_numbers(other))
        for one, other in zip(a.layers, b.layers, strict=True)
    )


def _numbers(layer: Layer) -> list[float]:
    tails = [value for tail in layer.trailing for value in (tail.values_in, tail.values_out)]
    config = [float(n) for key in sorted(layer.config) for n in _counts(layer.config[key])]
    return [float(layer.channels_in), float(layer.channels_out), *tails, *config]


def _counts(value: Any) -> Sequence[Any]:
    values = value if isinstance(value, tuple) else (value,)
    return values if all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values) else ()


def _with_numbers(layer: Layer, numbers: list[float]) -> Layer:
    rest = iter(numbers)
    channels_in, channels_out = (max(1, round(next(rest))) for _ in range(2))
    tail = tuple(replace(t, values_in=max(0.0, next(rest)), values_out=max(0.0, next(rest))) for t in layer.trailing)
    config: dict[str, Any] = dict(layer.config)
    for key in sorted(config):
        if counts := _counts(config[key]):
            new = tuple(_like(old, next(rest)) for old in counts)
            config[key] = new if isinstance(config[key], tuple) else new[0]
    return replace(layer, config=config, channels_in=channels_in, channels_out=channels_out, trailing=tail)


def _like(old: float, new: float) -> float:
    return round(new) if isinstance(old, int) else new


class Price(Protocol):
    def of(self, network: Network) -> float:
        """The exact cost."""

    def of_many(self, networks: Sequence[Network]) -> Array:
        """Costs to search with: quick, nearly exact."""


class Joules:
    """Joules of an iteration plus some standard deviations; to search, the same share of them as for `typical`.

    `factor` corrects the estimate by what a network like these was measured to cost.
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
    """Joules if each FLOP of the model cost the same."""

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
    """The cost of widths, computed once for each."""

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
