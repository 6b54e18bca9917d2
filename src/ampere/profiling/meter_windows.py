"""Slow meters: which ones are slow, and how a budget is divided between timing and reading power."""

from __future__ import annotations

from ampere.core import Meter
from ampere.core.windows import reading_by

SLOW_SECONDS = 2.0  # of a window: with shorter ones the joules of every block can be read
TIMED_SECONDS, TIMED_SHARE, TIMED_AT_MOST = 15.0, 0.1, 40.0  # for timing, with a counter: at least, share, at most
READINGS, READING_SHARE, TIMED_AT_MOST_BY_GAUGE = 8, 0.6, 60.0  # with a gauge: readings, their share, timing at most
YARDSTICK_SHARE, YARDSTICK_AT_MOST = 0.13, 10.0  # for the yardstick's power, by a gauge


def slow(meter: Meter) -> bool:
    """Whether reading the joules of every block would take too long."""
    return meter.window_seconds >= SLOW_SECONDS


def steady_power(meter: Meter, method: str = "additive", timing: str = "yardstick") -> bool:
    """Whether the power of steady loads is read, as with a slow gauge; a slow counter reads joules of whole windows."""
    return slow(meter) and meter.update_seconds > 0 and (method, timing) == ("additive", "yardstick")


def yardstick_by_gauge(budget: float) -> float:
    """Seconds to read the yardstick's power for, at the start: later joules are expressed in the yardstick's."""
    return min(YARDSTICK_SHARE * budget, YARDSTICK_AT_MOST)


def timed_seconds(meter: Meter, steady: bool, budget: float) -> float:
    """The seconds for short, timed blocks; the rest of the budget is for reading power."""
    if not steady:
        return min(max(TIMED_SECONDS, TIMED_SHARE * budget), TIMED_AT_MOST)
    readings = READINGS * reading_by(meter.update_seconds).whole
    return min(budget - min(readings, READING_SHARE * budget), TIMED_AT_MOST_BY_GAUGE)
