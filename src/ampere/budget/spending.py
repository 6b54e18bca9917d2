"""What the next step will cost: from the estimate at first, and more and more from what steps really cost.

m, v       mean and variance of a step          x    joules of a step at the newest reading
w          weight of the newest reading: less with each, but never so little that a drift is not followed

m' = m + w (x - m)          v' = (1 - w) (v + w (x - m)^2)           n more steps: at most n m + 3 sqrt(n v)

The first steps build what later ones reuse and cost more, several times as much on a busy machine. Nothing is learnt
from them: until they are over, the estimate counts, or else the least that a step has cost so far.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any

from ampere.meters import DEFAULT_WATTS_PER_CORE, CpuTimeMeter

from .ranks import Ranks
from .readings import Read, Reader, SharedMeter

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

    def at_most(self, steps: int = 1) -> float:
        """Joules that the next steps may cost; 0 where nothing but the first step is known, which says little."""
        if self.joules is None or (self.steps <= 1 and not self.worth):
            return 0.0
        return steps * self.joules + DEVIATIONS * sqrt(steps * self.variance)


# Joules as they are spent: read from a meter as often as that is cheap, and taken from the forecast in between.

READINGS_APART = 200  # a reading waits this many times what the last one took: 0.5 % of the time at most


class Counter:
    """Counts steps and joules, of all ranks of the job. Without a meter every step costs its forecast."""

    def __init__(
        self,
        meter: Reader | None,
        forecast: Forecast,
        on_reading: Callable[[float, float, int], None] = lambda joules, seconds, steps: None,
        on_problem: Callable[[str], None] = lambda problem: None,
        watts_per_core: float = DEFAULT_WATTS_PER_CORE,
    ) -> None:
        """`on_reading(joules, seconds, steps)` is called with what came since the reading before, after the warm-up.

        `on_problem` is called with the reason why a meter was not read.
        """
        self.forecast, self.steps, self.running = forecast, 0, False
        self.estimated_steps = 0  # that the meter did not read
        self.newest: float | None = None  # joules of a step at the newest reading
        self.ranks: Ranks | None = None
        self._on_reading, self._on_problem = on_reading, on_problem
        self._meter = SharedMeter(meter) if meter else None
        self._read_joules, self._unread = 0.0, 0
        self._model, self._modelled = CpuTimeMeter(watts_per_core), False  # where neither meter nor forecast says more
        self._reading_seconds, self._last = 0.0, 0.0

    @property
    def joules(self) -> float:
        return self._read_joules + self._unread * (self.forecast.joules or 0.0)

    def start(self) -> None:
        self.running, self._last = True, time.perf_counter()
        if self._meter and self._reads:
            self._meter.start()
        self._model.start()

    @property
    def _reads(self) -> bool:
        """Whether this process reads the meter; else another rank on the machine does."""
        return self.ranks is None or self.ranks.reads

    def share(self, ranks: Ranks | None) -> None:
        """Counts for all ranks: a step costs what it costs all of them."""
        self.ranks = ranks
        if ranks and not self.steps and self.forecast.joules is not None:
            self.forecast.joules *= ranks.size
            self.forecast.variance *= ranks.size**2

    def count_alone(self) -> None:
        """Without the other ranks from now on."""
        if self._meter and not self._reads:
            self._meter.start()
        self.ranks = None

    def step(self) -> None:
        self.steps += 1
        self._unread += 1
        if self._meter and time.perf_counter() - self._last >= READINGS_APART * self._reading_seconds:
            self.read()

    def read(self, go_on: bool = True) -> None:
        """Replaces the forecast of the newest steps by what they really cost. It never raises what a meter raises."""
        if not self._meter or not self.running:
            return
        began = time.perf_counter()
        joules, problem = self._meter.read(go_on) if self._reads else Read(0.0)
        joules = max(joules, self._estimated()) if problem else joules
        self._model.start()
        if self.ranks:
            joules = self.ranks.add(joules)
        self._book(joules, began - self._last, not problem)
        self._unread, self._last = 0, time.perf_counter()
        self._reading_seconds = self._last - began
        if problem:
            self._on_problem(problem)

    def _estimated(self) -> float:
        """What unread steps cost this reader: by the forecast, or by CPU time where nothing was read or estimated."""
        share = self.ranks.readers if self.ranks else 1
        self._modelled = self._modelled or self.forecast.joules is None
        if not self._modelled:
            return self._unread * (self.forecast.joules or 0.0) / share
        return self._model.stop() * (self.ranks.size if self.ranks else 1) / share

    def _book(self, joules: float, seconds: float, read: bool) -> None:
        self._read_joules += joules
        if read and self._modelled:
            self.forecast, self._modelled = Forecast(), False
        if not read:
            self.estimated_steps += self._unread
        if not self._unread:
            return
        self.newest = joules / self._unread
        if read and not self.forecast.warming_up:
            self._on_reading(joules, seconds, self._unread)
        if read or self._modelled:
            self.forecast.learn(joules, self._unread)

    def stop(self) -> None:
        self.read(go_on=False)
        self.running = False

    def to_json(self) -> dict[str, Any]:
        self.read()
        counted = {"joules": self.joules, "steps": self.steps, "estimated_steps": self.estimated_steps}
        return {**counted, "forecast": vars(self.forecast).copy()}

    def resume(self, record: dict[str, Any]) -> None:
        self._read_joules, self.steps, self._unread = float(record["joules"]), int(record["steps"]), 0
        self.estimated_steps = int(record.get("estimated_steps", 0))
        saved = record["forecast"]
        joules = None if saved["joules"] is None else float(saved["joules"])
        counts = (int(saved[name]) for name in ("worth", "readings", "steps"))
        self.forecast = Forecast(joules, float(saved["variance"]), *counts)
        if not (math.isfinite(self._read_joules) and self._read_joules >= 0 <= self.steps):
            raise ValueError("its joules or steps are impossible")
