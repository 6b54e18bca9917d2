"""How a simulated device changes over time: its clock, temperature, governor, drift, and other programs."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from .parts import Counter, Part
from .physics import Cost

TICK_SECONDS = 0.5  # how often the governor decides
RAMP_TICK_SECONDS = 0.05  # how often a clock that ramps does
COOLER_BY = 2.0  # kelvin below the limit at which the clock rises again
DRIFT_SECONDS = 60.0  # time constant of the drift


class SimulatedWindow(NamedTuple):
    """A span of training steps, with its true cost."""

    steps: int
    seconds: float
    joules: float
    throttled: bool


class Body:
    """The state of a simulated device; its time advances only while it works."""

    def __init__(self, part: Part, rng: Random) -> None:
        self.part, self._rng = part, rng
        self.now = 0.0  # simulated seconds
        self.kelvin = 0.0  # above ambient temperature
        self._step = 0  # index of the governor's clock
        self._drift = 0.0
        self._worked = 0.0  # seconds since it was idle

    @property
    def clock(self) -> float:
        if self.part.ramp:
            up = min(1.0, self._worked / self.part.ramp.seconds)
            return self.part.ramp.clock + up * (1 - self.part.ramp.clock)
        return self.part.cooling.clocks[self._step] if self.part.cooling else 1.0

    def train(self, cost_at: Callable[[float], Cost], steps: int) -> SimulatedWindow:
        """Train for so many steps, each at the cost of the current clock."""
        done, seconds, joules, throttled = 0, 0.0, 0.0, False
        while done < steps:
            cost = cost_at(self.clock)
            tick = TICK_SECONDS if self.clock == 1 or self.part.cooling else RAMP_TICK_SECONDS
            now = min(steps - done, max(1, math.ceil(tick / cost.seconds)))
            spent = self._spend(cost, now)
            done, seconds, joules = done + now, seconds + spent.seconds, joules + spent.joules
            throttled = throttled or self.clock < 1.0
        jitter = math.exp(self._rng.gauss(0.0, self.part.jitter))
        return SimulatedWindow(steps, seconds * jitter, joules, throttled)

    def _spend(self, cost: Cost, steps: int) -> Cost:
        part = self.part
        busy = self._rng.random() < part.busy_share
        slower = math.exp(self._drift) * (1 + part.busy_slowdown * busy)
        seconds = steps * cost.seconds * slower
        waiting = seconds - steps * cost.seconds
        joules = steps * cost.joules + waiting * part.static_watts + seconds * part.busy_watts * busy
        self._pass(seconds, joules / seconds)
        return Cost(seconds, joules)

    def _pass(self, seconds: float, watts: float) -> None:
        """Let time pass at a power: temperature, clock and drift follow."""
        self.now += seconds
        self._worked += seconds
        kept = math.exp(-seconds / DRIFT_SECONDS)
        self._drift = kept * self._drift + self._rng.gauss(0.0, self.part.drift) * math.sqrt(1 - kept**2)
        cooling = self.part.cooling
        if cooling is None:
            return
        left = math.exp(-seconds / cooling.seconds)
        self.kelvin = left * self.kelvin + (1 - left) * watts * cooling.kelvin_per_watt
        if self.kelvin > cooling.limit_kelvin:
            self._step = min(self._step + 1, len(cooling.clocks) - 1)
        elif self.kelvin < cooling.limit_kelvin - COOLER_BY:
            self._step = max(self._step - 1, 0)


def read(part: Part, window: SimulatedWindow, rng: Random, settled: bool = False) -> float:
    """The joules that the counter reads for a window: late at both ends, in steps, of a part of the time, with noise.

    With `settled` the same load began well before the window, so a late reading shows the same power: the ends do not
    matter.
    """
    counter = part.counter
    watts = window.joules / window.seconds
    samples = max(1.0, window.seconds / counter.update_seconds)
    late = 0.0 if settled else (rng.random() - rng.random()) * counter.update_seconds
    if part.ripple:
        late += part.ripple * aliased_seconds(counter, window) * math.sin(math.tau * rng.random())
    noise = rng.gauss(0.0, math.hypot(counter.noise_watts, counter.resolution_watts / math.sqrt(12)))
    return max(window.joules + watts * late + noise / math.sqrt(samples) * window.seconds, 1e-12)


def aliased_seconds(counter: Counter, window: SimulatedWindow) -> float:
    """How much of a window the swing of power within steps can add to what is read by looks at a part of the time.

    The swing's mean in one look, sin(s x)/(s x), added up over looks that follow each other by the phase 2x. Where the
    time between two looks is a whole number of steps, each finds the same moment of a step, and nothing cancels.
    """
    apart = counter.update_seconds / counter.looks
    x = math.pi * apart * window.steps / window.seconds
    look, looks = math.sin(counter.seen * x) / (counter.seen * x), window.seconds / apart
    return apart * look * (math.sin(looks * x) / math.sin(x) if abs(math.sin(x)) > 1e-9 else looks)
