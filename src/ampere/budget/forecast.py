"""What the next step will cost: from the estimate at first, and more and more from what steps really cost.

m, v       mean and variance of a step          x    joules a step of the newest reading
w          weight of the newest reading: less with each, but never so little that a drift is not followed

m' = m + w (x - m)          v' = (1 - w) (v + w (x - m)^2)           the next step: at most m + 3 sqrt(v)

The first step builds what later ones reuse and costs about twice as much, so it tells little of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

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
