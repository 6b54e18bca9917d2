"""What the next step will cost: from the estimate at first, and more and more from what steps really cost.

m, v       mean and variance of a step          x    joules a step of the newest reading
w          weight of the newest reading: less with each, but never so little that a drift is not followed

m' = m + w (x - m)          v' = (1 - w) (v + w (x - m)^2)           the next step: at most m + 3 sqrt(v)

The first step builds what later ones reuse and costs about twice as much, so it tells little of them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any, Protocol

from ampere.core.errors import DeviceError

ESTIMATE_COUNTS = 3  # readings that the estimate is worth
MEMORY = 20  # readings
DEVIATIONS = 3.0


@dataclass
class Forecast:
    joules: float | None = None  # of a step; None before anything is known
    variance: float = 0.0
    readings: int = 0
    worth: int = 0  # readings that it stood for before the first one

    def learn(self, joules: float, steps: int) -> None:
        each = joules / steps
        self.readings += 1
        if self.joules is None or self.readings == 1:
            self.joules = each if self.joules is None else self.joules
            return
        weight = max(1 / (self.readings - 1 + self.worth), 1 / MEMORY)
        apart = each - self.joules
        self.joules += weight * apart
        self.variance = (1 - weight) * (self.variance + weight * apart**2)

    @property
    def at_most(self) -> float:
        """Of the next step; 0 before anything is known."""
        return 0.0 if self.joules is None else self.joules + DEVIATIONS * sqrt(self.variance)


# Joules as they are spent: read from a meter as often as is cheap, and taken from the forecast in between.

READINGS_APART = 200  # a reading waits this many times what the last one took: 0.5 % of the time at most


class Reader(Protocol):
    """As the worker's meters are; one of your own will do."""

    def describe(self) -> dict[str, Any]: ...

    def start(self) -> None: ...

    def stop(self) -> float: ...


class Counter:
    """Counts steps and joules. Without a meter every step costs what is forecast."""

    def __init__(
        self,
        meter: Reader | None,
        forecast: Forecast,
        on_reading: Callable[[float, float, int], None] = lambda joules, seconds, steps: None,
    ) -> None:
        """`on_reading` hears of joules, seconds and steps since the reading before, but not of the first one."""
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

    def read(self, again: bool = True) -> None:
        """What was really spent until now."""
        if not self._meter or not self.running:
            return
        began = time.perf_counter()
        joules = self._meter.stop()
        if not math.isfinite(joules) or joules < 0:
            raise DeviceError(f"the meter read {joules} J: it cannot guard a budget, so choose another with meter=...")
        if again:
            self._meter.start()
        self._read_joules += joules
        if self._unread:
            self.newest = joules / self._unread
            if self.forecast.readings:
                self._on_reading(joules, began - self._last, self._unread)
            self.forecast.learn(joules, self._unread)
        self._unread, self._last = 0, time.perf_counter()
        self._reading_seconds = self._last - began

    def stop(self) -> None:
        self.read(again=False)
        self.running = False

    def to_json(self) -> dict[str, Any]:
        self.read()
        return {"joules": self.joules, "steps": self.steps, "forecast": vars(self.forecast).copy()}

    def resume(self, record: dict[str, Any]) -> None:
        self._read_joules, self.steps, self._unread = float(record["joules"]), int(record["steps"]), 0
        said = record["forecast"]
        joules = None if said["joules"] is None else float(said["joules"])
        self.forecast = Forecast(joules, float(said["variance"]), int(said["readings"]), int(said["worth"]))
        if not (math.isfinite(self._read_joules) and self._read_joules >= 0 <= self.steps):
            raise ValueError("it holds joules or steps that cannot be")
