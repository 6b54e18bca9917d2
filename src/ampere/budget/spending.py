"""What the next step will cost: from the estimate at first, and more and more from what steps really cost.

m, v       mean and variance of a step          x    joules of a step at the newest reading
w          weight of the newest reading: less with each, but never so little that a drift is not followed

m' = m + w (x - m)          v' = (1 - w) (v + w (x - m)^2)           the next step: at most m + 3 sqrt(v)

The first steps build what later ones reuse and cost more, several times as much on a busy machine. Nothing is learnt
from them: until they are over, the estimate counts, or else the least that a step has cost so far.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any, Protocol

from ampere.core.errors import DeviceError

WARM_UP_STEPS = 5
ESTIMATE_COUNTS = 3  # readings that the estimate is worth
MEMORY = 20  # readings
DEVIATIONS = 3.0


@dataclass
class Forecast:
    joules: float | None = None  # of a step; None before anything is known
    variance: float = 0.0
    worth: int = 0  # readings that the estimate counts as; 0 without one
    readings: int = 0  # after the warm-up
    steps: int = 0  # read so far, the warm-up included

    def learn(self, joules: float, steps: int) -> None:
        each, before = joules / steps, self.steps
        self.steps += steps
        if before < WARM_UP_STEPS:
            if not self.worth:
                self.joules = each if self.joules is None else min(self.joules, each)
            return
        self.readings += 1
        weight = max(1 / (self.readings + self.worth), 1 / MEMORY)
        difference = each - (self.joules or 0.0)
        self.joules = (self.joules or 0.0) + weight * difference
        self.variance = (1 - weight) * (self.variance + weight * difference**2)

    @property
    def warming_up(self) -> bool:
        return self.steps < WARM_UP_STEPS

    @property
    def at_most(self) -> float:
        """Joules that the next step may cost; 0 where nothing but the first step is known, which says little."""
        if self.joules is None or (self.steps <= 1 and not self.worth):
            return 0.0
        return self.joules + DEVIATIONS * sqrt(self.variance)


# Joules as they are spent: read from a meter as often as that is cheap, and taken from the forecast in between.

READINGS_APART = 200  # a reading waits this many times what the last one took: 0.5 % of the time at most


class Reader(Protocol):
    """A meter of the worker, or any object with these methods."""

    def describe(self) -> dict[str, Any]: ...

    def start(self) -> None: ...

    def stop(self) -> float: ...


class Counter:
    """Counts steps and joules. Without a meter every step costs its forecast."""

    def __init__(
        self,
        meter: Reader | None,
        forecast: Forecast,
        on_reading: Callable[[float, float, int], None] = lambda joules, seconds, steps: None,
    ) -> None:
        """`on_reading(joules, seconds, steps)` is called with what came since the reading before, after the warm-up."""
        self.forecast, self.steps, self.running = forecast, 0, False
        self.newest: float | None = None  # joules of a step at the newest reading
        self._on_reading = on_reading
        self._meter, self._read_joules, self._unread = meter, 0.0, 0
        self._reading_seconds, self._last = 0.0, 0.0

    @property
    def joules(self) -> float:
        return self._read_joules + self._unread * (self.forecast.joules or 0.0)

    def start(self) -> None:
        self.running, self._last = True, time.perf_counter()
        if self._meter:
            self._meter.start()

    def step(self) -> None:
        self.steps += 1
        self._unread += 1
        if self._meter and time.perf_counter() - self._last >= READINGS_APART * self._reading_seconds:
            self.read()

    def read(self, go_on: bool = True) -> None:
        """Replaces the forecast of the newest steps by what they really cost."""
        if not self._meter or not self.running:
            return
        began = time.perf_counter()
        joules = self._meter.stop()
        if not math.isfinite(joules) or joules < 0:
            raise DeviceError(f"the meter read {joules} J: it cannot guard a budget, so choose another with meter=...")
        if go_on:
            self._meter.start()
        self._read_joules += joules
        if self._unread:
            self.newest = joules / self._unread
            if not self.forecast.warming_up:
                self._on_reading(joules, began - self._last, self._unread)
            self.forecast.learn(joules, self._unread)
        self._unread, self._last = 0, time.perf_counter()
        self._reading_seconds = self._last - began

    def stop(self) -> None:
        self.read(go_on=False)
        self.running = False

    def to_json(self) -> dict[str, Any]:
        self.read()
        return {"joules": self.joules, "steps": self.steps, "forecast": vars(self.forecast).copy()}

    def resume(self, record: dict[str, Any]) -> None:
        self._read_joules, self.steps, self._unread = float(record["joules"]), int(record["steps"]), 0
        saved = record["forecast"]
        joules = None if saved["joules"] is None else float(saved["joules"])
        counts = (int(saved[name]) for name in ("worth", "readings", "steps"))
        self.forecast = Forecast(joules, float(saved["variance"]), *counts)
        if not (math.isfinite(self._read_joules) and self._read_joules >= 0 <= self.steps):
            raise ValueError("its joules or steps are impossible")
