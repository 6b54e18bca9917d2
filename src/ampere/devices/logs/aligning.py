"""Two clocks, one load: where in a log a pattern of work and rest is, and how one clock follows the other.

device   _##_#_##__#_      its own seconds, known to it
log      ...._##_#_##__#_....      some other clock, started some other time, a little faster or slower

log seconds = offset + rate x device seconds        one offset by correlation a pattern; the rate from several
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]

PATTERN = (1, 0, 1, 1, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1, 0)  # of length 15, unlike itself at every shift
LEAST_LIKENESS = 0.6  # correlation
CLEARLY = 1.2  # times as much as anywhere else
STEPS_A_PART = 40
MOST_DRIFT = 0.02


@dataclass(frozen=True)
class Place:
    """Where a pattern begins in the log, and how much it looks like it."""

    began: float
    likeness: float
    sure: bool


def place_of(times: Array, watts: Array, ends: Sequence[float], began: float) -> Place | None:
    """None while the log is not longer than the pattern. `ends` are those of its parts, by the device's clock."""
    edges = np.array([began, *ends]) - began
    length, part = edges[-1], edges[-1] / len(PATTERN)
    if len(times) < len(PATTERN) or times[-1] - times[0] < length:
        return None
    starts = np.arange(times[0], times[-1] - length + 1e-9, part / STEPS_A_PART)
    found = np.array([likeness(times, watts, start, edges) for start in starts])
    best = int(np.argmax(found))
    elsewhere = found[np.abs(starts - starts[best]) > part]
    rival = float(np.max(elsewhere)) if len(elsewhere) else 0.0
    sure = bool(found[best] >= LEAST_LIKENESS and found[best] > CLEARLY * rival)
    return Place(_peak(starts, found, best), float(found[best]), sure)


def likeness(times: Array, watts: Array, start: float, edges: Array) -> float:
    """Correlation of the rows inside with the share of each row's time that was work."""
    first, last = np.searchsorted(times, (start, start + edges[-1]))
    first = max(first, 1)
    if last - first < len(PATTERN):
        return 0.0
    worked = np.concatenate([[0.0], np.cumsum(np.diff(edges) * np.array(PATTERN))])
    before, now = times[first - 1 : last - 1] - start, times[first:last] - start
    expected = (np.interp(now, edges, worked) - np.interp(before, edges, worked)) / (now - before)
    seen = watts[first:last]
    spread = np.std(expected) * np.std(seen)
    return float(np.mean((expected - expected.mean()) * (seen - seen.mean())) / spread) if spread > 0 else 0.0


def _peak(starts: Array, found: Array, best: int) -> float:
    """Between the steps of the search: the top of a parabola through three of them."""
    if not 0 < best < len(starts) - 1:
        return float(starts[best])
    left, top, right = found[best - 1 : best + 2]
    bend = left - 2 * top + right
    shift = 0.5 * (left - right) / bend if bend < 0 else 0.0
    return float(starts[best] + shift * (starts[1] - starts[0]))


class Clocks:
    """From the device's seconds to the log's."""

    def __init__(self) -> None:
        self._pairs: list[tuple[float, float]] = []

    def due(self, device_seconds: float, every_seconds: float) -> bool:
        """Whether it is time to compare them again. A device whose clock went back was started anew."""
        if self._pairs and device_seconds < self._pairs[-1][0]:
            self._pairs.clear()
        return not self._pairs or device_seconds - self._pairs[-1][0] >= every_seconds

    def add(self, device_seconds: float, log_seconds: float) -> None:
        """What cannot be drift is another clock, of which the pairs before tell nothing."""
        if self._pairs:
            device, log = device_seconds - self._pairs[-1][0], log_seconds - self._pairs[-1][1]
            if abs(log - device) > MOST_DRIFT * device:
                self._pairs.clear()
        self._pairs.append((device_seconds, log_seconds))

    @property
    def latest(self) -> float | None:
        """When they were compared last, by the device's clock."""
        return self._pairs[-1][0] if self._pairs else None

    @property
    def rate(self) -> float:
        """Over all that was seen; within reason, since two patterns close together tell little."""
        if len(self._pairs) < 2:
            return 1.0
        device, log = np.array(self._pairs).T
        slope = float(np.polyfit(device - device[0], log - log[0], 1)[0])
        return float(np.clip(slope, 1 - MOST_DRIFT, 1 + MOST_DRIFT))

    def in_log(self, device_seconds: float) -> float:
        device, log = self._pairs[-1]
        return log + self.rate * (device_seconds - device)
