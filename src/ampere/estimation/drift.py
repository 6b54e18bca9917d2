"""How a device has changed since it was profiled, told by runs that were recorded.

    r_i     log of what run i cost over what the profile says       s_i   its standard deviation
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

from ampere.core import Measurement
from ampere.storage.profile import Observation

WANDER = 0.03
RUN_NOISE = 0.02  # of a run without a yardstick beside it, relative


class Condition(NamedTuple):
    """How much dearer a step is than in the reference condition, and how sure that is, relative."""

    factor: float = 1.0
    stddev: float = 0.0


def followed(runs: Sequence[Observation], estimate: Callable[[Observation], tuple[float, float]]) -> list[Condition]:
    """The condition at each run; `estimate` tells joules and standard deviation in the reference condition."""
    x, variance, found = 0.0, 0.0, []
    for run in runs:
        joules, stddev = estimate(run)
        own = hypot(stddev / joules, RUN_NOISE)
        variance += WANDER**2
        gain = variance / (variance + own**2)
        x += gain * (log(run.measurement.joules / joules) - x)
        variance *= 1 - gain
        found.append(Condition(exp(x), sqrt(variance)))
    return found


def in_reference(run: Observation, condition: Condition) -> Observation:
    """As one round of a whole network."""
    return replace(run, purpose="network", measurement=_scaled(run.measurement, 1 / condition.factor))


def _scaled(m: Measurement, by: float) -> Measurement:
    return replace(
        m,
        joules=m.joules * by,
        seconds=m.seconds * by,
        cpu_seconds=m.cpu_seconds * by,
        ratio=m.ratio * by,
        rounds=(m.ratio * by,),
        joules_rounds=(m.joules * by,) if m.joules_rounds else (),
    )
