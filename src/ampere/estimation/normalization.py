"""From ratios to a cost in the reference condition.

    t    CPU seconds of a step          y    of the yardstick beside it        y0   of the yardstick when profiled

When the machine slows down, the yardstick does not slow down exactly as networks do: a neighbour that takes
memory bandwidth slows it more, a lower clock slows both alike. So a network is taken to share only a part of
the yardstick's slowdown,

    t / t0 = (y / y0) ^ sharing,       hence       t0 / y0 = (t / y) (y / y0) ^ (1 - sharing),

and the part is learnt: from networks that were measured more than once, and from what is left of all of them once
each is accounted for, which moves with the yardstick where the part is wrong. On a throttled device it comes out
near 1 (the plain ratio); on a shared machine lower. What is not known of it is doubt that all estimates share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ampere.core import Measurement

Array = NDArray[np.float64]

ROUND_NOISE = 0.025  # of a ratio, relative
BELIEF = 0.3  # how far from 1 the part may be before anything was seen: one standard deviation
LEAST = 0.3


class DriftShare(NamedTuple):
    part: float
    doubt: float  # one standard deviation


def drift_share_of(measurements: Sequence[Measurement]) -> DriftShare:
    """By least squares within each measurement: how its rounds' ratios move with their yardsticks."""
    moved, squared = 0.0, (ROUND_NOISE / BELIEF) ** 2
    for m in measurements:
        if len(m.rounds) > 1 and len(m.yardsticks) == len(m.rounds):
            ratios, yardsticks = np.log(m.rounds), np.log(m.yardsticks)
            apart = yardsticks - yardsticks.mean()
            moved += float(apart @ (ratios - ratios.mean()))
            squared += float(apart @ apart)
    return DriftShare(_possible(1.0 + moved / squared), ROUND_NOISE / math.sqrt(squared))


def corrected(before: DriftShare, conditions: Array, errors: Array, deviations: Array) -> DriftShare:
    """By least squares over networks: how their relative errors, so unsure each, move with their log yardsticks."""
    weights = deviations**-2.0
    apart = conditions - np.average(conditions, weights=weights)
    certainty = before.doubt**-2 + float(np.sum(weights * apart**2))
    shift = float(np.sum(weights * apart * errors)) / certainty
    return DriftShare(_possible(before.part + shift), certainty**-0.5)


def conditions_of(measurements: Sequence[Measurement], yardstick_seconds: float) -> Array:
    """How much dearer the yardstick was beside each than it is at its nominal cost, as a logarithm."""
    return np.array([float(np.mean(np.log(np.array(m.yardsticks) / yardstick_seconds))) for m in measurements])


def _possible(part: float) -> float:
    return float(np.clip(part, LEAST, 1.0))


def to_reference(measurement: Measurement, yardstick_seconds: float, sharing: float) -> Measurement:
    """The same rounds as they would have been with the yardstick at its nominal cost."""
    m = measurement
    if len(m.yardsticks) != len(m.rounds):
        return m
    pairs = zip(m.rounds, m.yardsticks, strict=True)
    rounds = tuple(r * (y / yardstick_seconds) ** (1.0 - sharing) for r, y in pairs)
    scale = median(rounds) / m.ratio
    return replace(
        m,
        rounds=rounds,
        ratio=median(rounds),
        joules=m.joules if m.joules_rounds else m.joules * scale,  # a counter's are the yardstick's already
        seconds=m.seconds * scale,
        cpu_seconds=m.cpu_seconds * scale,
    )
