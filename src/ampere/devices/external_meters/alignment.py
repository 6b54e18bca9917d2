"""Aligning two clocks by a load: where a pattern of work and rest is in a log, and how one clock follows the other.

    device   _##_#_##__#_              its own seconds
    log      ...._##_#_##__#_....      another clock, started at another time, a little faster or slower

    log seconds = offset + rate x device seconds        each pattern gives an offset, several give the rate

In a log that was exported after the run, several patterns are found together, though each looks like every other:

    device   |P|.........|P|...................|P|
    log   .....|P|.........|P|...................|P|...   likeness of one pattern everywhere, added at these distances
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ampere.core.errors import MeterError

from .log import Log

Array = NDArray[np.floating[Any]]

PATTERN = (
    1,
    0,
    1,
    1,
    0,
    0,
    1,
    0,
    0,
    0,
    1,
    1,
    1,
    1,
    0,
)  # 1 is work, 0 is rest; of length 15, unlike itself at every shift
LEAST_LIKENESS = 0.6  # correlation of a pattern that counts as found
CLEARLY = 1.2  # times the correlation anywhere else
STEPS_A_PART = 40
MOST_DRIFT = 0.02


@dataclass(frozen=True)
class Place:
    """Where a pattern begins in the log, how well it fits, and whether it is clearly the best place."""

    began: float
    likeness: float
    certain: bool


def place_of(times: Array, watts: Array, ends: Sequence[float], began: float) -> Place | None:
    """Where the pattern is in the log; None while the log is shorter. `ends` of its parts are by the device's clock."""
    edges = np.array([began, *ends]) - began
    length, part = edges[-1], edges[-1] / len(PATTERN)
    if len(times) < len(PATTERN) or times[-1] - times[0] < length:
        return None
    starts = np.arange(times[0], times[-1] - length + 1e-9, part / STEPS_A_PART)
    found = np.array([likeness(times, watts, start, edges) for start in starts])
    best = int(np.argmax(found))
    elsewhere = found[np.abs(starts - starts[best]) > part]
    rival = float(np.max(elsewhere)) if len(elsewhere) else 0.0
    certain = bool(found[best] >= LEAST_LIKENESS and found[best] > CLEARLY * rival)
    return Place(_peak(starts, found, best), float(found[best]), certain)


def likeness(times: Array, watts: Array, start: float, edges: Array) -> float:
    """Correlation of rows that start here with the share of each row's time that the pattern works."""
    first, last = np.searchsorted(times, (start, start + edges[-1]))
    first = max(first, 1)
    if last - first < len(PATTERN):
        return 0.0
    worked = np.cumsum([0.0, *((edges[1:] - edges[:-1]) * PATTERN)])
    ends = times[first - 1 : last] - start
    work = np.interp(ends, edges, worked)
    expected = (work[1:] - work[:-1]) / (ends[1:] - ends[:-1])
    # Asked for thousands of places: products of vectors are several times faster than `np.std` and `np.mean`.
    expected = expected - expected.sum() / len(expected)
    seen = watts[first:last] - watts[first:last].sum() / (last - first)
    spread = math.sqrt((expected @ expected) * (seen @ seen))
    return float(expected @ seen) / spread if spread > 0 else 0.0


def _peak(starts: Array, found: Array, best: int) -> float:
    """The best place between the steps of the search: the top of a parabola through three of them."""
    if not 0 < best < len(starts) - 1:
        return float(starts[best])
    left, top, right = found[best - 1 : best + 2]
    bend = left - 2 * top + right
    shift = 0.5 * (left - right) / bend if bend < 0 else 0.0
    return float(starts[best] + shift * (starts[1] - starts[0]))


class Clocks:
    """Converts the device's seconds to the log's, from pairs of times that are the same moment."""

    def __init__(self) -> None:
        self._pairs: list[tuple[float, float]] = []

    def due(self, device_seconds: float, every_seconds: float, soon_seconds: float = math.inf) -> bool:
        """Whether to align the clocks again. A device whose clock went back was restarted: its pairs are dropped.

        One pair says nothing about the rate: where `soon_seconds` are given, the second follows after them, and each
        later one after as long as all before it, up to `every_seconds`.
        """
        if self._pairs and device_seconds < self._pairs[-1][0]:
            self._pairs.clear()
        if not self._pairs:
            return True
        latest = self._pairs[-1][0]
        return device_seconds - latest >= min(every_seconds, max(soon_seconds, latest - self._pairs[0][0]))

    def add(self, device_seconds: float, log_seconds: float) -> None:
        """Add a pair. If it differs by more than drift, a clock was changed, and earlier pairs are dropped."""
        if self._pairs:
            device, log = device_seconds - self._pairs[-1][0], log_seconds - self._pairs[-1][1]
            if abs(log - device) > MOST_DRIFT * device:
                self._pairs.clear()
        self._pairs.append((device_seconds, log_seconds))

    @property
    def latest(self) -> float | None:
        """When the clocks were last aligned, by the device's clock; None if never."""
        return self._pairs[-1][0] if self._pairs else None

    @property
    def rate(self) -> float:
        """Log seconds per device second, over all pairs; limited, since two close pairs say little."""
        if len(self._pairs) < 2:
            return 1.0
        device, log = np.array(self._pairs).T
        slope = float(np.polyfit(device - device[0], log - log[0], 1)[0])
        return float(np.clip(slope, 1 - MOST_DRIFT, 1 + MOST_DRIFT))

    def in_log(self, device_seconds: float) -> float:
        """The log's time of a moment of the device's clock."""
        device, log = self._pairs[-1]
        return log + self.rate * (device_seconds - device)


STEPS_PER_PART = 8  # of the search; places are refined afterwards
USUAL_DRIFT = 1e-3  # quartz clocks are ten times better
RESTED = 0.4, 0.9  # of a part at rest: after the load before it, and before the next


@dataclass(frozen=True)
class Alignment:
    """How a log's clock follows the device's: log seconds = offset + rate x device seconds."""

    offset: float
    rate: float
    likeness: float  # median correlation of the patterns that were found
    found: int
    given: int
    within_seconds: float  # the largest distance of a pattern from the line; 0 for one pattern

    def in_log(self, device_seconds: float) -> float:
        return self.offset + self.rate * device_seconds


def aligned(log: Log, patterns: Sequence[Sequence[float]]) -> Alignment:
    """Align a whole log. Each pattern is its beginning and the ends of its parts, by the device's clock, in order."""
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
        raise MeterError(
            f"the clock of {log.spec.path} runs {rate:.3g} times as fast as the device's: give the unit of its time"
        )
    offset = float(np.mean(there - rate * device))
    within = float(np.max(np.abs(there - rate * device - offset)))
    return Alignment(offset, rate, float(np.median(alike)), len(pairs), len(patterns), within)


def watts_at_rest(log: Log, clocks: Alignment, patterns: Sequence[Sequence[float]]) -> float | None:
    """Watts in the parts of patterns in which the device rested; None where the log covers none of them."""
    rests = []
    for pattern in patterns:
        for works, began, ended in zip(PATTERN, pattern, pattern[1:], strict=False):
            span = [clocks.in_log(began + share * (ended - began)) for share in RESTED]
            if not works and log.covers(*span):
                rests.append(log.mean_watts(*span))
    return max(0.0, float(np.median(rests))) if rests else None  # an offset may make rest negative


def not_seen(log: Log) -> MeterError:
    """The error for a log that does not show the load."""
    return MeterError(
        f"the load of the device does not show in {log.spec.path}: check that it is the whole recording of this run, "
        "that the meter powers this device, and that its columns and units are right"
    )


def _together(log: Log, edges: Array, shifts: Array) -> tuple[float, float]:
    """Where the first pattern is in the log (or would be, before its start), and how far off each may be."""
    times, watts = log.since(0)
    step = float(edges[-1]) / len(PATTERN) / STEPS_PER_PART
    starts = np.arange(times[0], times[-1] - edges[-1], step) if len(times) else np.array([])
    if not len(starts):
        raise MeterError(f"{log.spec.path} is shorter than the load pattern: export the whole recording")
    everywhere = np.array([likeness(times, watts, start, edges) for start in starts])
    cells = np.rint(shifts / step).astype(int)
    radius = STEPS_PER_PART // 2 + math.ceil(USUAL_DRIFT * float(shifts[-1]) / step)
    near = _largest_within(everywhere, radius)
    total = np.zeros(len(starts) + cells[-1])  # by where the first pattern begins, which may be before the log
    for cell in cells:
        total[cells[-1] - cell : cells[-1] - cell + len(starts)] += np.maximum(near, 0.0)
    best = int(np.argmax(total))
    around = np.abs(np.arange(len(total)) - best) > 2 * radius + STEPS_PER_PART
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
