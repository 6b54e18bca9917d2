"""Costs from the cheapest to the most expensive, and the probability of that order.

    x    log of what an entry costs        C    covariance of the x of all entries: relative uncertainties

    r = a / b        s^2 = C_aa + C_bb - 2 C_ab, the variance of log r

    P(a is cheaper) = Phi(-log r / s)         90 % interval of r:  r exp(-+ 1.645 s)

Here one network is ranked over several profiles: the runtimes of a device, or devices. Each profile is estimated by
itself, so C is diagonal: var(a) / a^2, and the uncertainty of bringing a profile to the condition of the others
(normalization.py). Several networks on one profile are in pairwise.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import erf, exp, hypot, log, sqrt
from typing import Any, NamedTuple

import numpy as np

from ampere.core import Network, TrainingSetup
from ampere.core.display import frame, html_table
from ampere.estimation.estimate import Estimate
from ampere.estimation.estimator import Estimator
from ampere.estimation.features import Array
from ampere.estimation.interval import Z90

from .normalization import Normalized, common_allocator, device_of, names_of, normalize, on_one_device

CONFIDENT = 0.9  # below this probability an order is too close to call
DRAWS = 100_000  # to find the probability of an order of three or more


def probability_below_one(ratio: float, relative_stddev: float) -> float:
    if relative_stddev == 0:
        return 0.5 if ratio == 1 else float(ratio < 1)
    return 0.5 * (1 + erf(-log(ratio) / relative_stddev / sqrt(2)))


def ratio_interval(ratio: float, relative_stddev: float) -> tuple[float, float]:
    """Of 90 %."""
    apart = exp(Z90 * relative_stddev)
    return ratio / apart, ratio * apart


def in_percent(probability: float) -> str:
    """Never more certain than an estimate can be."""
    return "over 99.9 %" if probability > 0.999 else f"{100 * probability:.{1 if probability > 0.99 else 0}f} %"


class Pair(NamedTuple):
    """Two entries of a ranking: what the first costs of the second."""

    first: str
    second: str
    ratio: float
    relative_stddev: float

    @property
    def interval(self) -> tuple[float, float]:
        """90 % interval of the ratio."""
        return ratio_interval(self.ratio, self.relative_stddev)

    @property
    def first_is_cheaper(self) -> float:
        """The probability of it."""
        return probability_below_one(self.ratio, self.relative_stddev)

    @property
    def cheaper(self) -> str:
        return self.first if self.first_is_cheaper >= 0.5 else self.second

    @property
    def probability(self) -> float:
        """That the one called cheaper is."""
        return max(self.first_is_cheaper, 1 - self.first_is_cheaper)

    def to_json(self) -> dict[str, Any]:
        return {
            "first": self.first,
            "second": self.second,
            "ratio": self.ratio,
            "ratio_interval": list(self.interval),
            "cheaper": self.cheaper,
            "probability": self.probability,
        }


@dataclass(frozen=True)
class RankedEntry:
    """One network estimated from one profile, compared with the cheapest entry of its ranking."""

    name: str  # of the model or of the profile, whichever the entries differ in
    device: str
    setup: TrainingSetup
    normalized: Normalized
    estimate: Estimate  # of an iteration, in one condition of the device
    joules: float  # of an iteration, or of a training example where batches differ
    ratio: float = 1.0  # to the cheapest
    relative_stddev: float = 0.0  # of the ratio

    @property
    def interval(self) -> tuple[float, float]:
        """90 % interval of the ratio."""
        return ratio_interval(self.ratio, self.relative_stddev)

    @property
    def probability(self) -> float:
        """That it costs more than the entry called cheapest."""
        return 1 - probability_below_one(self.ratio, self.relative_stddev)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "device": self.device,
            "runtime": self.setup.runtime,
            "setup": self.setup.to_json(),
            "joules": self.joules,
            "ratio": self.ratio,
            "ratio_interval": list(self.interval),
            "probability": self.probability,
            **self.normalized.to_json(),
            "estimate": self.estimate.to_json(),
        }

    def row(self) -> dict[str, Any]:
        """The figures of a table."""
        low, high = self.interval
        stddev = self.joules * self.estimate.stddev / self.estimate.joules
        figures = {"joules": self.joules, "stddev": stddev, "ratio": self.ratio, "ratio_low": low, "ratio_high": high}
        return {**figures, "probability": self.probability}


@dataclass(frozen=True)
class Ranked:
    """Entries from the cheapest to the most expensive."""

    entries: tuple[RankedEntry, ...]
    covariance: tuple[tuple[float, ...], ...]  # of the logs of their costs

    @property
    def cheapest(self) -> RankedEntry:
        return self.entries[0]

    def entry(self, name: str) -> RankedEntry:
        return next(entry for entry in self.entries if entry.name == name)

    def pair(self, first: str, second: str) -> Pair:
        """Two entries by their names."""
        a, b = ([e.name for e in self.entries].index(name) for name in (first, second))
        ratio = self.entries[a].joules / self.entries[b].joules
        return Pair(first, second, ratio, _stddev_of_ratio(self.covariance, a, b))

    @property
    def pairwise(self) -> tuple[Pair, ...]:
        """Every pair, the one that is estimated cheaper first."""
        return tuple(self.pair(a.name, b.name) for a, b in itertools.combinations(self.entries, 2))

    @property
    def probability(self) -> float:
        """The probability that the cheapest is cheaper than the next one."""
        return min((entry.probability for entry in self.entries[1:]), default=1.0)

    @cached_property
    def order_probability(self) -> float:
        """That the whole order is as given."""
        neighbours = [
            self.pair(a.name, b.name).probability for a, b in zip(self.entries, self.entries[1:], strict=False)
        ]
        if len(neighbours) < 2:
            return self.probability
        values, vectors = np.linalg.eigh(np.array(self.covariance))
        noise = np.random.default_rng(0).standard_normal((DRAWS, len(values)))
        drawn = np.log([e.joules for e in self.entries]) + (noise * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        in_order = float(np.mean(np.all(np.diff(drawn, axis=1) >= 0, axis=1)))
        return min(in_order, *neighbours)

    def figures(self) -> dict[str, Any]:
        return {
            "cheapest": self.cheapest.name,
            "probability": self.probability,
            "order_probability": self.order_probability,
        }


def ranked(entries: Sequence[RankedEntry], covariance: Array) -> tuple[tuple[RankedEntry, ...], Any]:
    """Entries and covariance, cheapest first, each entry with its ratio to the cheapest."""
    order = sorted(range(len(entries)), key=lambda i: entries[i].joules)
    matrix = tuple(tuple(float(covariance[i, j]) for j in order) for i in order)
    cheapest, *others = (entries[i] for i in order)
    compared = (
        replace(e, ratio=e.joules / cheapest.joules, relative_stddev=_stddev_of_ratio(matrix, place, 0))
        for place, e in enumerate(others, 1)
    )
    return (cheapest, *compared), matrix


def _stddev_of_ratio(covariance: Sequence[Sequence[float]], a: int, b: int) -> float:
    return sqrt(max(covariance[a][a] + covariance[b][b] - 2 * covariance[a][b], 0.0))


@dataclass(frozen=True)
class Ranking(Ranked):
    """One model estimated from several profiles, the cheapest first."""

    model: str
    one_device: bool  # the profiles are of one device, such as of several runtimes

    @property
    def one_meter(self) -> bool:
        """Whether joules of all entries mean the same."""
        first, *others = (entry.estimate.meter for entry in self.entries)
        return all(meter.counts_as(first) for meter in others)

    @property
    def sentence(self) -> str:
        """`cnn5 is cheapest in torch (97 % probability): jax costs 1.10 times as much (90 %: 1.04 to 1.16)`."""
        cheapest, *others = self.entries
        rival = min(others, key=lambda entry: entry.probability)
        low, high = rival.interval
        costs = f"{rival.name} costs {rival.ratio:.2f} times as much (90 %: {low:.2f} to {high:.2f})"
        where = f"{'in' if self.one_device else 'on'} {cheapest.name} ({in_percent(self.probability)} probability)"
        if self.probability < CONFIDENT:
            return f"{self.model} is too close to call: perhaps cheapest {where}; {costs}"
        return f"{self.model} is cheapest {where}: {costs}"

    def to_json(self) -> dict[str, Any]:
        return {
            "model": self.model,
            **self.figures(),
            "sentence": self.sentence,
            "ranking": [entry.to_json() for entry in self.entries],
            "pairwise": [pair.to_json() for pair in self.pairwise],
        }

    def rows(self) -> list[dict[str, Any]]:
        """One record for each profile, cheapest first."""
        return [{"profile": entry.name, "device": entry.device, **entry.row()} for entry in self.entries]

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row for each profile, cheapest first."""
        return frame(self.rows())

    def _repr_html_(self) -> str:
        return html_table(self.sentence, self.rows())


def rank(
    network: Network, estimators: Sequence[Estimator], allocator: str = "system", labels: Sequence[str] = ()
) -> Ranking:
    """One network ranked over several profiles.

    `labels` are further names of the profiles, such as their files', for those that are named alike.
    """
    profiles = [estimator.profile for estimator in estimators]
    names, allocator = names_of(profiles, labels), common_allocator(estimators, allocator)
    entries = []
    for name, normalized, estimator in zip(names, normalize(estimators, names), estimators, strict=True):
        estimate, profile = normalized.estimate(estimator, network, allocator), estimator.profile
        entries.append(RankedEntry(name, device_of(profile), profile.setup, normalized, estimate, estimate.joules))
    variances = [hypot(e.estimate.stddev / e.estimate.joules, e.normalized.stddev) ** 2 for e in entries]
    return Ranking(*ranked(entries, np.diag(variances)), network.name or "network", on_one_device(profiles))
