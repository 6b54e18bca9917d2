"""Joules as they are spent: read from a meter as often as is cheap, and taken from the forecast in between."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, Protocol

from ampere.errors import DeviceError

from .forecast import Forecast

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
