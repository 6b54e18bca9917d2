"""Which meters are slow, how they are asked, and how a budget is shared between time and power."""

from __future__ import annotations

from ampere.core import Meter
from ampere.core.windows import reading_by

SLOW_SECONDS = 2.0  # of a window: below, reading joules of every block takes no longer than its time does
TIMED_SECONDS, TIMED_SHARE, TIMED_AT_MOST = 15.0, 0.1, 40.0
READINGS, READING_SHARE, TIMED_AT_MOST_BY_GAUGE = 8, 0.6, 60.0
YARDSTICK_SHARE, YARDSTICK_AT_MOST = 0.13, 10.0


def slow(meter: Meter) -> bool:
    return meter.window_seconds >= SLOW_SECONDS


def steady_power(meter: Meter, method: str = "additive", protocol: str = "yardstick") -> bool:
    """A slow gauge is asked for the power of steady loads; a slow counter of joules for whole windows."""
    return slow(meter) and meter.update_seconds > 0 and (method, protocol) == ("additive", "yardstick")


def yardstick_by_gauge(budget: float) -> float:
    """How long its power is read before anything else: all that is measured later is told in its joules."""
    return min(YARDSTICK_SHARE * budget, YARDSTICK_AT_MOST)


def timed_seconds(meter: Meter, steady: bool, budget: float) -> float:
    """What the short blocks get; power gets the rest."""
    if not steady:
        return min(max(TIMED_SECONDS, TIMED_SHARE * budget), TIMED_AT_MOST)
    readings = READINGS * reading_by(meter.update_seconds).whole
    return min(budget - min(readings, READING_SHARE * budget), TIMED_AT_MOST_BY_GAUGE)
