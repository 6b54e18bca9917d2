"""The power of networks, learnt from few readings: it varies far less between networks than time does.

    r_q    FLOPs, values and launches per second of a network, standardized over networks
    P(net) = level x (1 + w . r + f(r)) + noise         w ~ N(0, slope^2), f ~ GP(0, bend^2, squared exponential)

Static power, joules per FLOP and joules per byte make a line; caches and half-filled units bend it. Few readings leave
several slopes, bends and noises possible: their answers are averaged, weighted by posterior probability, and where they
disagree, that adds to the uncertainty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

from ampere.core import Layer, Network, work

from .features import Array

QUANTITIES = ("flops", "values", "launches")
LEAST_POWER = 0.2  # of the mean: no network draws less, however different from the others
LEAST_LIKELY = 0.03  # relative to the most likely shape: less likely ones are left out
PRIOR_STRENGTH = 2.0  # weight of the usual shape against the likelihood of the readings
MOST_READ = 160  # networks that power is learnt from: time grows with their cube, for each shape
LEVEL_STDDEV = 1.0  # relative, before anything was measured


class Shape(NamedTuple):
    """How power depends on rates of work; all numbers are relative to the mean power."""

    slope: float = 0.15  # for a rate one standard deviation from the mean
    bend: float = 0.05
    reach: float = 3.0  # length scale of the bend, in standard deviations
    noise: float = 0.025

    def covariance(self, a: Array, b: Array) -> Array:
        """Prior covariance between the relative powers at two sets of rates."""
        apart = np.sum((a[:, None] - b[None]) ** 2, axis=-1) / self.reach**2
        return LEVEL_STDDEV**2 + self.slope**2 * (a @ b.T) + self.bend**2 * np.exp(-apart / 2)

    def variances(self, rates: Array) -> Array:
        """Prior variance of the relative power at each row of rates."""
        return LEVEL_STDDEV**2 + self.slope**2 * np.sum(rates**2, axis=1) + self.bend**2

    @property
    def distance_from_usual(self) -> float:
        """Distance from the usual shape, in squared logarithms."""
        usual = Shape()
        pairs = ((self.slope, usual.slope), (self.bend, usual.bend), (self.noise, usual.noise))
        return float(sum(np.log(mine / theirs) ** 2 for mine, theirs in pairs))


SHAPES = [
    Shape(*values)
    for values in product((0.05, 0.15, 0.4), (0.01, 0.05, 0.15), (1.5, 3.0), (0.01, 0.025, 0.04, 0.06, 0.12))
]


class Power:
    """The power of networks whose time is measured, learnt from those whose watts were read."""

    def __init__(self, networks: Sequence[Network], seconds: Array, watts: Array, read: Array, whole: Array) -> None:
        """`read` marks networks whose watts were read, `whole` the whole ones: rates are standardized over those."""
        rates, read = _rates(networks, seconds), _thinned(read)
        usual = rates[whole if np.any(whole) else slice(None)]
        self._usual, self._deviation = usual.mean(axis=0), np.maximum(usual.std(axis=0), 1e-3 * usual.mean(axis=0))
        self._all, self._read, self._whole = self._scaled(rates), read, whole
        self._rates = self._all[read]
        self._level = float(np.mean(watts[read])) if np.any(read) else 1.0
        self._seen = watts[read] / self._level - 1.0
        self._weights, self._shapes = self._weighed() if np.any(read) else (np.ones(1), [Shape()])
        self._solved: list[Array] = [np.asarray(np.linalg.inv(self._noisy(s)), dtype=np.float64) for s in self._shapes]

    def arrays(self) -> dict[str, Array]:
        """All that `watts` needs, to be kept in a file."""
        return {
            "usual": self._usual,
            "deviation": self._deviation,
            "rates": self._rates,
            "level": np.array(self._level),
            "seen": self._seen,
            "weights": self._weights,
            "shapes": np.array(self._shapes),
            "solved": np.array(self._solved),
        }

    @classmethod
    def from_arrays(cls, kept: Mapping[str, Array]) -> Power:
        """What `arrays` returned, to ask for watts only."""
        made = cls.__new__(cls)
        made._usual, made._deviation, made._rates = kept["usual"], kept["deviation"], kept["rates"]
        made._level, made._seen, made._weights = float(kept["level"]), kept["seen"], kept["weights"]
        made._shapes, made._solved = [Shape(*shape) for shape in kept["shapes"].tolist()], [*kept["solved"]]
        return made

    def watts(self, networks: Sequence[Network], seconds: Array) -> tuple[Array, Array]:
        """Watts of networks that take these seconds a step, and their relative standard deviations."""
        rates = self._scaled(_rates(networks, seconds))
        each = [self._by(shape, inverse, rates) for shape, inverse in zip(self._shapes, self._solved, strict=True)]
        means, variances = np.array([mean for mean, _ in each]), np.array([variance for _, variance in each])
        mean = self._weights @ means
        stddev = np.sqrt(self._weights @ (variances + (means - mean) ** 2))
        return self._level * np.maximum(1 + mean, LEAST_POWER), stddev

    @property
    def scatter(self) -> float:
        """By how much a network that was read differs from what its rates of work say; a relative deviation."""
        return float(np.sqrt(self._weights @ np.array([shape.noise**2 for shape in self._shapes])))

    def _by(self, shape: Shape, inverse: Array, rates: Array) -> tuple[Array, Array]:
        across = shape.covariance(rates, self._rates)
        solved = across @ inverse
        return solved @ self._seen, np.maximum(shape.variances(rates) - np.sum(across * solved, axis=1), 0.0)

    def gains(self) -> Array:
        """For each network, by how much reading its power would reduce the uncertainty of whole networks' power."""
        shape = Shape()
        posterior = shape.covariance(self._all, self._all)
        if np.any(self._read):
            across = posterior[:, self._read]
            noisy = across[self._read] + shape.noise**2 * np.eye(len(self._rates))
            posterior = posterior - across @ np.linalg.solve(noisy, across.T)
        return np.mean(posterior[self._whole] ** 2, axis=0) / (np.maximum(np.diag(posterior), 0.0) + shape.noise**2)

    def _scaled(self, rates: Array) -> Array:
        return (rates - self._usual) / self._deviation

    def _noisy(self, shape: Shape) -> Array:
        return shape.covariance(self._rates, self._rates) + shape.noise**2 * np.eye(len(self._rates))

    def _weighed(self) -> tuple[Array, list[Shape]]:
        """The shapes that are likely enough, and their weights, which sum to 1."""
        logs = np.array([self._log_posterior(shape) for shape in SHAPES])
        likely = np.exp(logs - logs.max())
        kept = likely > LEAST_LIKELY
        return likely[kept] / likely[kept].sum(), [shape for shape, keep in zip(SHAPES, kept, strict=True) if keep]

    def _log_posterior(self, shape: Shape) -> float:
        covariance = self._noisy(shape)
        fits = float(self._seen @ np.linalg.solve(covariance, self._seen))
        return -0.5 * (fits + float(np.linalg.slogdet(covariance)[1])) - PRIOR_STRENGTH * shape.distance_from_usual


def _thinned(read: Array) -> Array:
    """At most MOST_READ of the networks whose watts were read, evenly spread."""
    places = np.flatnonzero(read)
    if len(places) <= MOST_READ:
        return read
    kept = np.zeros_like(read)
    kept[places[np.linspace(0, len(places) - 1, MOST_READ).astype(int)]] = True
    return kept


def _rates(networks: Sequence[Network], seconds: Array) -> Array:
    """Each network's amount of each quantity per second."""
    amounts = [np.sum([_amounts(layer) for layer in n.layers], axis=0) for n in networks]
    return np.array(amounts) / np.asarray(seconds)[:, None]


@lru_cache(maxsize=65536)
def _amounts(layer: Layer) -> tuple[float, ...]:
    needed = work(layer)
    return tuple(float(getattr(needed, quantity)) for quantity in QUANTITIES)
