"""Several patterns of load in a whole log: where they are together, though each looks like every other.

given   |P|.........|P|...................|P|            by the device's clock
log   .....|P|.........|P|...................|P|...      likeness of one pattern everywhere, added up at these distances
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import MeterError
from .aligning import CLEARLY, LEAST_LIKENESS, MOST_DRIFT, PATTERN, Array, likeness, place_of
from .log import Log

STEPS_A_PART = 8  # of the search; places are told finer afterwards
USUAL_DRIFT = 1e-3  # crystals are ten times better
RESTED = 0.4, 0.9  # of a part at rest: the load before it is gone, the next has not come


@dataclass(frozen=True)
class Alignment:
    """log seconds = offset + rate x device seconds"""

    offset: float
    rate: float
    likeness: float  # median correlation of the patterns that were found
    found: int
    given: int
    within_seconds: float  # how far the patterns lie off the line, at most; 0 of one

    def in_log(self, device_seconds: float) -> float:
        return self.offset + self.rate * device_seconds


def aligned(log: Log, patterns: Sequence[Sequence[float]]) -> Alignment:
    """Each pattern is its beginning and the ends of its parts, by the device's clock; in order."""
    began = np.array([pattern[0] for pattern in patterns])
    first, radius = _together(log, np.array(patterns[0]) - began[0], began - began[0])
    pairs, alike = [], []
    for pattern, shift in zip(patterns, began - began[0], strict=True):
        place = place_of(*_part_of(log, first + shift, radius, pattern[-1] - pattern[0]), pattern[1:], pattern[0])
        if place and place.likeness >= LEAST_LIKENESS:
            pairs.append((pattern[0], place.began))
            alike.append(place.likeness)
    if not pairs:
        raise not_seen(log)
    device, there = np.array(pairs).T
    rate = float(np.polyfit(device - device[0], there - there[0], 1)[0]) if len(pairs) > 1 else 1.0
    if abs(rate - 1) > MOST_DRIFT:
        raise MeterError(f"{log.spec.path} runs {rate:.3g} times as fast as the device: name its time's unit")
    offset = float(np.mean(there - rate * device))
    within = float(np.max(np.abs(there - rate * device - offset)))
    return Alignment(offset, rate, float(np.median(alike)), len(pairs), len(patterns), within)


def watts_at_rest(log: Log, clocks: Alignment, patterns: Sequence[Sequence[float]]) -> float | None:
    """In the parts of the patterns that the device rested in; None where the log has none of them."""
    rests = []
    for pattern in patterns:
        for works, began, ended in zip(PATTERN, pattern, pattern[1:], strict=False):
            span = [clocks.in_log(began + share * (ended - began)) for share in RESTED]
            if not works and log.covers(*span):
                rests.append(log.mean_watts(*span))
    return float(np.median(rests)) if rests else None


def not_seen(log: Log) -> MeterError:
    return MeterError(
        f"the load of the device is not seen in {log.spec.path}: is it the whole recording of this run, of the "
        "meter that feeds the device, and are its columns and units right?"
    )


def _together(log: Log, edges: Array, shifts: Array) -> tuple[float, float]:
    """Where the first pattern is in the log (or would be, before it), and how far off each may be."""
    times, watts = log.since(0)
    step = float(edges[-1]) / len(PATTERN) / STEPS_A_PART
    starts = np.arange(times[0], times[-1] - edges[-1], step) if len(times) else np.array([])
    if not len(starts):
        raise MeterError(f"{log.spec.path} is shorter than the pattern of load: export the whole recording")
    everywhere = np.array([likeness(times, watts, start, edges) for start in starts])
    cells = np.rint(shifts / step).astype(int)
    radius = STEPS_A_PART // 2 + math.ceil(USUAL_DRIFT * float(shifts[-1]) / step)
    near = _largest_within(everywhere, radius)
    total = np.zeros(len(starts) + cells[-1])  # of where the first begins, from the last one's distance before the log
    for cell in cells:
        total[cells[-1] - cell : cells[-1] - cell + len(starts)] += np.maximum(near, 0.0)
    best = int(np.argmax(total))
    around = np.abs(np.arange(len(total)) - best) > 2 * radius + STEPS_A_PART
    rival = float(np.max(total[around], initial=0.0))
    if total[best] < LEAST_LIKENESS or total[best] <= CLEARLY * rival:
        raise not_seen(log)
    return float(times[0] + (best - cells[-1]) * step), 2 * radius * step


def _largest_within(values: Array, radius: int) -> Array:
    padded = np.pad(values, radius, constant_values=-1.0)
    largest: Array = np.lib.stride_tricks.sliding_window_view(padded, 2 * radius + 1).max(axis=1)
    return largest


def _part_of(log: Log, began: float, radius: float, length: float) -> tuple[Array, Array]:
    times, watts = log.since(0)
    inside = slice(*np.searchsorted(times, (began - radius, began + length + radius)))
    return times[inside], watts[inside]
