"""How a device has drifted since it was profiled, learnt from recorded training runs.

    r_i     log of run i's cost over its estimate                    s_i   its standard deviation
    x_i     log of the device's condition at run i: a random walk, WANDER from one run to the next
    V_i     variance of x_i after run i

    v = V + WANDER^2        k = v / (v + s^2)        x' = x + k (r - x)        V' = (1 - k) v

Divided by its condition, a run is one more whole network that the fit learns from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import exp, hypot, log, sqrt
from typing import NamedTuple

from .normalization import NormalizedCost

WANDER = 0.03  # standard deviation of the log condition from one run to the next
RUN_NOISE = 0.02  # relative, of a run that is not paired with the yardstick


class Condition(NamedTuple):
    """A step's cost relative to the reference condition, with its relative standard deviation."""

    factor: float = 1.0
    stddev: float = 0.0


def followed(
    runs: Sequence[NormalizedCost], estimate: Callable[[NormalizedCost], tuple[float, float]]
) -> list[Condition]:
    """The device's condition at each run. `estimate` returns a run's joules and stddev in the reference condition."""
    x, variance, found = 0.0, 0.0, []
    for run in runs:
        joules, stddev = estimate(run)
        own = hypot(stddev / joules, RUN_NOISE)
        variance += WANDER**2
        gain = variance / (variance + own**2)
        x += gain * (log(run.joules / joules) - x)
        variance *= 1 - gain
        found.append(Condition(exp(x), sqrt(variance)))
    return found


def as_network(run: NormalizedCost, condition: Condition) -> NormalizedCost:
    """A run as one round of a whole network in the reference condition."""
    moved = run.scaled(1 / condition.factor)
    joules = (moved.joules,) if moved.joules_rounds else ()
    return replace(moved, purpose="network", rounds=(moved.ratio,), joules_rounds=joules)
