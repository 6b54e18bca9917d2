"""What the next step will cost: from the estimate at first, and more and more from what steps really cost.

m, v       mean and variance of a step          x    joules a step of the newest reading, over k steps
w          weight of the newest reading: less with each, but never so little that a drift is not followed

m' = m + w (x - m)          v' = (1 - w) (v + w k (x - m)^2)         the next step: at most m + 3 sqrt(v)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

ESTIMATE_COUNTS = 3  # readings that the estimate is worth
MEMORY = 50  # readings
DEVIATIONS = 3.0


@dataclass
class Forecast:
    joules: float | None = None  # of a step; None before anything is known
    variance: float = 0.0
    readings: int = 0

    def learn(self, joules: float, steps: int) -> None:
        each = joules / steps
        self.readings += 1
        if self.joules is None:
            self.joules = each
            return
        weight = max(1 / (self.readings + ESTIMATE_COUNTS), 1 / MEMORY)
        apart = each - self.joules
        self.joules += weight * apart
        self.variance = (1 - weight) * (self.variance + weight * steps * apart**2)

    @property
    def at_most(self) -> float:
        """Of the next step; 0 before anything is known."""
        return 0.0 if self.joules is None else self.joules + DEVIATIONS * sqrt(self.variance)
