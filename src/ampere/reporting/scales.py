"""From values to pixels, and the round numbers on the way."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

LOG_STEPS = {0.7: (1, 1.5, 2, 3, 4, 5, 7), 1.5: (1, 2, 5), 3.0: (1, 3)}


class Scale(Protocol):
    def __call__(self, value: float) -> float: ...

    def ticks(self, most: int) -> list[float]: ...


@dataclass(frozen=True)
class Linear:
    low: float
    high: float
    start: float
    end: float
    whole: bool = False  # of things that come one by one

    def __call__(self, value: float) -> float:
        span = self.high - self.low or 1.0
        return self.start + (value - self.low) / span * (self.end - self.start)

    def ticks(self, most: int = 5) -> list[float]:
        span = self.high - self.low
        if span <= 0:
            return [self.low]
        rough = 10.0 ** math.floor(math.log10(span / most))
        step = next(rough * s for s in (1, 2, 2.5, 5, 10, 20) if span / (rough * s) <= most)
        step = float(max(1, math.ceil(step))) if self.whole else step
        first = math.ceil(self.low / step - 1e-9)
        return [i * step for i in range(first, math.floor(self.high / step + 1e-9) + 1)]


@dataclass(frozen=True)
class Log:
    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = math.log(max(value, 1e-300) / self.low) / math.log(self.high / self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 6) -> list[float]:
        """As many round numbers as there is room for."""
        decades = math.log10(self.high / self.low)
        steps = next((s for widest, s in LOG_STEPS.items() if decades <= widest), (1,))
        exponents = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        found = [s * 10.0**e for e in exponents for s in steps if self.low <= s * 10.0**e <= self.high]
        return found[:: max(1, math.ceil(len(found) / most))]


def around(values: Iterable[float], margin: float = 1.15) -> tuple[float, float]:
    """Bounds for a logarithmic scale that holds all positive values with some air."""
    positive = [v for v in values if v > 0 and math.isfinite(v)] or [1.0]
    return min(positive) / margin, max(positive) * margin


def whole(value: float) -> str:
    return f"{value:,.10g}"


def tick(value: float) -> str:
    """Three digits, and never a power of ten."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
