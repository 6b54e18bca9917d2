"""HyperPower: Bayesian optimization under limits that are known before training.

acquisition(x) = expected improvement of accuracy(x)  if x is inside all limits,  else 0

accuracy is a Gaussian process (Matern 5/2) over the settings of a candidate. The first candidates are drawn at random.
D. Stamoulis, E. Cai, D.-C. Juan, D. Marculescu, HyperPower, DATE 2018.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import erf, pi, sqrt
from typing import Any

import numpy as np

from ampere.core.errors import UsageError
from ampere.estimation.gaussian_process import kernel

from .candidates import Array, Group, screened_inside
from .result import Candidate, Trial

POOL = 1000  # candidates inside all limits, of which the next one is taken
AT_RANDOM = 3  # that are trained first
LENGTHS = (0.1, 0.2, 0.5, 1.0, 2.0)  # in units of the spread of settings; the most likely one is taken
NOISE = 1e-2  # of accuracy, as a share of its variance


class HyperPower:
    """What to train next, given what was trained."""

    def __init__(
        self, groups: Sequence[Group], allowed: float, deviations: float, varied: Sequence[str], seed: int
    ) -> None:
        rng = np.random.default_rng(seed)
        self._pool = screened_inside(groups, allowed, deviations, POOL, rng)
        if not self._pool:
            raise UsageError(
                "no candidate that was drawn stays inside the limits with this confidence: give a lower --confidence, "
                "or wider limits"
            )
        self._places = settings_of(self._pool, varied)

    @property
    def size(self) -> int:
        """How many candidates there are to train."""
        return len(self._pool)

    def next(self, trials: Sequence[Trial]) -> Candidate:
        """The candidate to train next, while fewer than `size` were."""
        done = {id(trial.candidate) for trial in trials}
        left = [i for i, candidate in enumerate(self._pool) if id(candidate) not in done]
        if len(trials) < AT_RANDOM:
            return self._pool[left[0]]
        known = {id(candidate): i for i, candidate in enumerate(self._pool)}
        seen = [known[id(trial.candidate)] for trial in trials]
        accuracies = np.array([trial.accuracy or 0.0 for trial in trials])  # one that failed is as bad as can be
        gains = expected_improvement(self._places[seen], accuracies, self._places[left])
        return self._pool[left[int(np.argmax(gains))]]


def settings_of(candidates: Sequence[Candidate], varied: Sequence[str]) -> Array:
    """Each candidate's settings as numbers from 0 to 1: octaves of sizes, other values in the order first seen."""
    words: dict[str, int] = {}

    def numbers(value: Any) -> list[float]:
        if isinstance(value, dict):
            return [n for part in value.values() for n in numbers(part)]
        if isinstance(value, (list, tuple)):
            return [float(len(value)), *(n for part in value for n in numbers(part))]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return [float(np.log2(1.0 + abs(value)))]
        return [float(words.setdefault(str(value), len(words)))]

    rows = [
        [n for value in (c.optimizer, c.batch, *(c.arguments.get(name) for name in varied)) for n in numbers(value)]
        for c in candidates
    ]
    table = np.zeros((len(rows), max(map(len, rows))))
    for row, values in zip(table, rows, strict=True):
        row[: len(values)] = values
    spread = np.ptp(table, axis=0)
    return np.asarray((table - table.min(axis=0))[:, spread > 0] / spread[spread > 0])


def expected_improvement(seen: Array, accuracies: Array, places: Array) -> Array:
    """How much more than the best so far is expected at each place: s (z Phi(z) + phi(z)), z = (mean - best) / s."""
    mean, spread = float(accuracies.mean()), float(accuracies.std()) or 1.0
    scaled = (accuracies - mean) / spread
    width = max(1.0, sqrt(seen.shape[1]))

    def solved(length: float) -> tuple[float, Array, Array]:
        """Minus the log likelihood, the factor of the covariance, and the weights of what was seen."""
        covariance = kernel(seen / (length * width), seen / (length * width)) + NOISE * np.eye(len(seen))
        factor = np.linalg.cholesky(covariance)
        weights = np.linalg.solve(covariance, scaled)
        return float(0.5 * scaled @ weights + np.log(np.diag(factor)).sum()), np.asarray(factor), np.asarray(weights)

    length = min(LENGTHS, key=lambda length: solved(length)[0])
    _, factor, weights = solved(length)
    shared = kernel(places / (length * width), seen / (length * width))
    means = shared @ weights
    deviations = np.sqrt(np.maximum(1.0 - np.sum(np.linalg.solve(factor, shared.T) ** 2, axis=0), 1e-12))
    z = (means - scaled.max()) / deviations
    below = 0.5 * (1.0 + np.array([erf(value / sqrt(2.0)) for value in z]))
    return np.asarray(spread * deviations * (z * below + np.exp(-(z**2) / 2) / sqrt(2 * pi)))
