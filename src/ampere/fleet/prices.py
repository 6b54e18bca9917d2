"""Prices for the seconds and the battery of each device, and the bound that they prove for every assignment.

    x_jd            1 where job j runs on device d
    nu_ed           price of a second of d before the end e of a slot          mu_d   of a joule of its battery
    adjusted_jd     cost_jd + reserved_jd * (sum of nu_ed over ends not before the deadline) + drawn_jd * mu_d

    bound           sum_j min_d adjusted_jd - sum nu_ed capacity_ed - sum mu_d battery_d        (Lagrangian dual)
    smooth          the same, with -T log sum_d exp(-adjusted_jd / T) for the minimum           below the bound

The smooth bound has a gradient, so that L-BFGS climbs it in tens of steps; T falls from round to round. A job looks at
FEW devices, different for different jobs at first, and after each round at more that are good for it at the new
prices. Bounds are always of all devices.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from .problem import Array, Problem, Slots

FEW = 24  # of the cheapest devices, and as many at random, that a job looks at in the first round
MORE = 12  # in each further round
ROUNDS = (0.05, 0.02, 0.01, 0.005, 0.003, 0.002)  # temperatures, relative to what a job costs at least
STEPS = 30  # of L-BFGS in a round
SPREAD = 0.1  # how much devices are made to differ where jobs choose which to look at
HIGHEST = 1e4  # worth of a whole device, relative to what jobs cost on one: prices of too many jobs would grow forever
GOOD_ENOUGH = 1e-3  # relative gap at which nothing more is tried
AT_A_TIME = 32  # jobs that are looked at together: small enough for a processor's cache
TINY = 1e-9

Whole = NDArray[np.intp]


@dataclass(frozen=True)
class Prices:
    """What a second before a deadline and a joule of a battery are worth on each device."""

    seconds: Array  # [slots, devices]: of a second of a job that must end by the end of the slot
    joules: Array  # [devices]
    bound: float


def prices_of(problem: Problem, slots: Slots, least: Array, reached: float, seconds: float, seed: int = 0) -> Prices:
    """Prices with a high bound, where jobs cost at `least` so much and an assignment of cost `reached` is known."""
    dual, until = _Dual(problem, slots, least, seed), time.monotonic() + seconds
    x = np.zeros(dual.ends.size * dual.count + dual.count)
    best, best_bound = x, dual.look(x)
    for temperature in ROUNDS:
        if reached - best_bound <= GOOD_ENOUGH * reached or time.monotonic() > until:
            break
        x = _climbed(dual, x, temperature, until)
        bound = dual.look(x)
        if bound > best_bound:
            best, best_bound = x, bound
    return dual.prices(best, best_bound, len(slots.edges) - 1)


def _climbed(dual: _Dual, x: Array, temperature: float, until: float) -> Array:
    """Where some steps of L-BFGS lead, or as many as there is time for."""

    def in_time(intermediate_result: Any) -> None:
        if time.monotonic() > until:
            raise StopIteration

    smooth = dual.smooth(temperature)
    limits = [(0.0, HIGHEST)] * len(x)
    return np.asarray(
        minimize(smooth, x, jac=True, method="L-BFGS-B", bounds=limits, callback=in_time, options={"maxiter": STEPS}).x
    )


class _Dual:
    """The bound as a function of x: what the seconds until each end and each battery are worth, in units of `scale`."""

    def __init__(self, problem: Problem, slots: Slots, least: Array, seed: int) -> None:
        # A deadline inside a slot counts as the slot's end: a bound must not ask for more than the problem does.
        due = np.searchsorted(slots.edges[1:], np.minimum(problem.deadlines, slots.edges[-1]) - 1e-6)
        in_order = np.argsort(due := np.minimum(due, len(slots.edges) - 2), kind="stable")
        self.ends, self._row = np.unique(due[in_order], return_inverse=True)
        self.count, self._rng = len(problem.devices), np.random.default_rng(seed)
        self._capacity = np.maximum(np.cumsum(slots.free, axis=1).T[self.ends], TINY)  # [ends, devices]
        self._limited = np.isfinite(problem.batteries)
        self._batteries = np.maximum(np.where(self._limited, problem.batteries, 1.0), TINY)
        possible = problem.possible[in_order]
        self._costs = np.where(possible, least[in_order], np.inf).astype(np.float32)
        self._reserved = np.where(possible, problem.reserved[in_order], 0).astype(np.float32)
        self._drawn = np.where(possible, problem.drawn[in_order], 0).astype(np.float32)
        self._least = np.maximum(np.min(self._costs, axis=1, keepdims=True), np.float32(1e-30))
        self._scale = float(np.sum(self._least, dtype=np.float64)) / self.count
        starts = [*np.flatnonzero(np.diff(self._row, prepend=-1)).tolist(), len(due)]
        self._together = [
            slice(n, min(n + AT_A_TIME, end)) for begin, end in pairwise(starts) for n in range(begin, end, AT_A_TIME)
        ]
        self._few: Whole = np.zeros((len(due), 0), dtype=np.intp)

    def _split(self, x: Array) -> tuple[Array, Array, float]:
        """Prices of a second for a job that is due at an end, prices of joules, and what everything is worth."""
        nu = x[: -self.count].reshape(-1, self.count) * self._scale / self._capacity
        mu = np.where(self._limited, x[-self.count :] * self._scale / self._batteries, 0.0)
        worth = float(np.sum(nu * self._capacity)) + float(np.sum(mu * self._batteries))
        return np.cumsum(nu[::-1], axis=0)[::-1], mu, worth

    def prices(self, x: Array, bound: float, slots: int) -> Prices:
        second, mu, _ = self._split(x)
        after = np.searchsorted(self.ends, np.arange(slots))  # a slot where nothing is due costs what the next end does
        return Prices(np.vstack([second, np.zeros((1, self.count))])[after], mu, bound)

    def look(self, x: Array) -> float:
        """The bound. Jobs look at more devices from now on: those that are good for them at these prices."""
        second, mu, worth = self._split(x)
        second, mu = second.astype(np.float32), mu.astype(np.float32)
        first, known = self._few.shape[1] == 0, self._few.shape[1]
        added = np.zeros((len(self._row), min(FEW if first else MORE, self.count - known)), dtype=np.intp)
        total = 0.0
        for some in self._together:
            adjusted = self._reserved[some] * second[self._row[some.start]]
            adjusted += self._drawn[some] * mu
            adjusted += self._costs[some]
            total += float(np.sum(np.min(adjusted, axis=1), dtype=np.float64))
            if added.shape[1]:
                np.put_along_axis(adjusted, self._few[some], np.inf, axis=1)
                adjusted *= np.exp(SPREAD * self._rng.standard_normal(self.count, dtype=np.float32))
                added[some] = np.argpartition(adjusted, added.shape[1] - 1, axis=1)[:, : added.shape[1]]
        few = [self._few, added]
        if first and self.count > 2 * FEW:
            few.append(self._rng.integers(self.count, size=(len(self._row), FEW)))
        self._few = np.hstack(few)
        return total * (1 - 1e-6) - worth

    def smooth(self, temperature: float) -> Any:
        """The negative smooth bound of the devices that jobs look at, and its gradient, as a function of x."""
        few, size = self._few, self.ends.size * self.count
        costs, reserved, drawn = (
            np.take_along_axis(a, few, axis=1) for a in (self._costs, self._reserved, self._drawn)
        )
        place, device = (self._row[:, None] * self.count + few).ravel(), few.ravel()
        warm = np.float32(temperature) * self._least

        def at(x: Array) -> tuple[float, Array]:
            second, mu, worth = self._split(x)
            share = second.astype(np.float32).ravel()[place].reshape(few.shape)  # becomes x_jd step by step
            share *= reserved
            share += drawn * mu.astype(np.float32)[few]
            share += costs
            lowest = np.min(share, axis=1, keepdims=True)
            np.exp(np.divide(np.subtract(lowest, share, out=share), warm, out=share), out=share)
            together = np.sum(share, axis=1, keepdims=True)
            share /= together
            total = float(np.sum(lowest - warm * np.log(together), dtype=np.float64))
            load = np.bincount(place, (share * reserved).ravel(), size).reshape(-1, self.count)
            used = np.bincount(device, (share * drawn).ravel(), self.count) / self._batteries
            over = np.cumsum(load, axis=0) / self._capacity - 1
            gradient = np.concatenate([over.ravel(), np.where(self._limited, used - 1, 0.0)])
            return -(total - worth) / self._scale, -gradient

        return at
