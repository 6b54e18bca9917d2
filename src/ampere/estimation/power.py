"""Watts of networks, learnt from few: power varies far less between networks than time does, and follows what they do.

    r_q    FLOPs, values and launches a second of a network, less their mean, over their deviation
    P(net) = level x (1 + w . r + f(r)) + noise         w ~ N(0, slope^2), f ~ GP(0, bend^2, squared exponential)

A static part, joules a FLOP and joules a byte make a line; caches and half-filled units bend it. How steep, how bent
and how noisy is weighed by evidence: all that few readings leave possible has its say, and what it says apart is doubt.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from ampere.core import Network, work

from .features import Array

DONE = ("flops", "values", "launches")
LEAST_POWER = 0.2  # of the mean: a piece may lie far beside whole networks, but nothing draws less than its rest
LEAST_LIKELY = 0.03  # against the likeliest shape: others are left out
BELIEF = 2.0  # in what is usual, against evidence
LEVEL_DOUBT = 1.0  # relative, before anything was seen


class Shape(NamedTuple):
    """All relative to the mean power."""

    slope: float = 0.15  # for a rate that is one deviation from the mean
    bend: float = 0.05
    reach: float = 3.0  # of the bend, in deviations
    noise: float = 0.025

    def covariance(self, a: Array, b: Array) -> Array:
        apart = np.sum((a[:, None] - b[None]) ** 2, axis=-1) / self.reach**2
        return LEVEL_DOUBT**2 + self.slope**2 * (a @ b.T) + self.bend**2 * np.exp(-apart / 2)

    def variances(self, rates: Array) -> Array:
        return LEVEL_DOUBT**2 + self.slope**2 * np.sum(rates**2, axis=1) + self.bend**2

    @property
    def strangeness(self) -> float:
        """How far from what is usual, in squared logarithms."""
        usual = Shape()
        pairs = ((self.slope, usual.slope), (self.bend, usual.bend), (self.noise, usual.noise))
        return float(sum(np.log(mine / theirs) ** 2 for mine, theirs in pairs))


SHAPES = [
    Shape(*values) for values in product((0.05, 0.15, 0.4), (0.01, 0.05, 0.15), (1.5, 3.0), (0.01, 0.025, 0.04, 0.06))
]


class Power:
    """Of all networks whose time is known, learnt from those whose watts were read."""

    def __init__(self, networks: Sequence[Network], seconds: Array, watts: Array, read: Array, whole: Array) -> None:
        """`whole` are those that the others are pieces of: rates are told among them."""
        rates = _rates(networks, seconds)
        usual = rates[whole if np.any(whole) else slice(None)]
        self._usual, self._deviation = usual.mean(axis=0), np.maximum(usual.std(axis=0), 1e-3 * usual.mean(axis=0))
        self._all, self._read, self._whole = self._scaled(rates), read, whole
        self._rates = self._all[read]
        self._level = float(np.mean(watts[read])) if np.any(read) else 1.0
        self._seen = watts[read] / self._level - 1.0
        self._weights, self._shapes = self._weighed() if np.any(read) else (np.ones(1), [Shape()])
        self._solved: list[Array] = [np.asarray(np.linalg.inv(self._noisy(s)), dtype=np.float64) for s in self._shapes]

    def watts(self, networks: Sequence[Network], seconds: Array) -> tuple[Array, Array]:
        """With their relative standard deviations."""
        rates = self._scaled(_rates(networks, seconds))
        told = [self._by(shape, inverse, rates) for shape, inverse in zip(self._shapes, self._solved, strict=True)]
        means, variances = np.array([mean for mean, _ in told]), np.array([variance for _, variance in told])
        mean = self._weights @ means
        doubt = np.sqrt(self._weights @ (variances + (means - mean) ** 2))
        return self._level * np.maximum(1 + mean, LEAST_POWER), doubt

    def _by(self, shape: Shape, inverse: Array, rates: Array) -> tuple[Array, Array]:
        across = shape.covariance(rates, self._rates)
        solved = across @ inverse
        return solved @ self._seen, np.maximum(shape.variances(rates) - np.sum(across * solved, axis=1), 0.0)

    def gains(self) -> Array:
        """How much doubt about the power of whole networks would go if that of one were read, for each of all."""
        shape = Shape()
        open_ = shape.covariance(self._all, self._all)
        if np.any(self._read):
            across = open_[:, self._read]
            noisy = across[self._read] + shape.noise**2 * np.eye(len(self._rates))
            open_ = open_ - across @ np.linalg.solve(noisy, across.T)
        return np.mean(open_[self._whole] ** 2, axis=0) / (np.maximum(np.diag(open_), 0.0) + shape.noise**2)

    def _scaled(self, rates: Array) -> Array:
        return (rates - self._usual) / self._deviation

    def _noisy(self, shape: Shape) -> Array:
        return shape.covariance(self._rates, self._rates) + shape.noise**2 * np.eye(len(self._rates))

    def _weighed(self) -> tuple[Array, list[Shape]]:
        """Shapes that matter, with weights that sum to 1."""
        evidence = np.array([self._evidence(shape) for shape in SHAPES])
        likely = np.exp(evidence - evidence.max())
        there = likely > LEAST_LIKELY
        return likely[there] / likely[there].sum(), [shape for shape, kept in zip(SHAPES, there, strict=True) if kept]

    def _evidence(self, shape: Shape) -> float:
        covariance = self._noisy(shape)
        fits = float(self._seen @ np.linalg.solve(covariance, self._seen))
        return -0.5 * (fits + float(np.linalg.slogdet(covariance)[1])) - BELIEF * shape.strangeness


def _rates(networks: Sequence[Network], seconds: Array) -> Array:
    """What each does a second."""
    done = [[float(sum(getattr(work(layer), quantity) for layer in n.layers)) for quantity in DONE] for n in networks]
    return np.array(done) / np.asarray(seconds)[:, None]
