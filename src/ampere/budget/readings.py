"""A meter as budgets read it: several may follow one meter, and a meter that fails ends nobody's training.

meter       start --- stop start --- stop start --- stop fails start --- stop
total              +12 J          +9 J             ?                  +11 J
budget A    |----------- 21 J ------|                                            since it last looked
budget B           |---- 9 J + ? -----------------------|                        at least 9 J
"""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any, NamedTuple, Protocol

from ampere.core.errors import AmpereError, WorkerError, first_line

MOST_JOULES = 1e9  # of one reading: a day at 10 kW


class Reader(Protocol):
    """A meter of the worker, or any object with these methods."""

    def describe(self) -> dict[str, Any]: ...

    def start(self) -> None: ...

    def stop(self) -> float: ...


class CardMeter:
    """The meter of the card that a process trains on, read when all that was queued is done."""

    def __init__(self, meter: Reader, synchronize: Callable[[], None], card: str) -> None:
        self.card = card  # which a rank of the same job may train on as well
        self._meter, self._synchronize = meter, synchronize
        self.describe = meter.describe

    def start(self) -> None:
        self._synchronize()
        self._meter.start()

    def stop(self) -> float:
        self._synchronize()
        return self._meter.stop()


class Read(NamedTuple):
    joules: float
    problem: str = ""  # why the joules are not all of the span; "" where they are


class SharedMeter:
    """What a meter has read, for one budget of those that follow it. It never raises what the meter raises."""

    def __init__(self, meter: Reader) -> None:
        self._meter, self._total, self._joules, self._failures = meter, _Total(meter), 0.0, 0

    def start(self) -> None:
        """Begins a span."""
        with _lock:
            self._total = _running.setdefault(id(self._meter), self._total)
            self._total.read()
            self._total.followers += 1
            self._joules, self._failures = self._total.joules, self._total.failures

    def read(self, go_on: bool = True) -> Read:
        """Joules since the span began, or since it was last read."""
        with _lock:
            total = self._total
            if not go_on:
                total.followers -= 1
            total.read(go_on=total.followers > 0)
            if not total.followers:
                _running.pop(id(self._meter), None)
            since = Read(total.joules - self._joules, total.problem if total.failures > self._failures else "")
            self._joules, self._failures = total.joules, total.failures
            return since


class _Total:
    """Joules that a meter has read since it was first followed, and how often it failed."""

    def __init__(self, meter: Reader) -> None:
        self.joules, self.failures, self.problem, self.followers = 0.0, 0, "", 0
        self._meter, self._started = meter, False

    def read(self, go_on: bool = True) -> None:
        if self.followers or not go_on:
            self._stop()
        if go_on:
            self._start()

    def _start(self) -> None:
        try:
            self._meter.start()
            self._started = True
        except Exception as problem:
            self.problem = _one_line(problem)

    def _stop(self) -> None:
        started, self._started = self._started, False
        if not started:
            self.failures += 1
            return
        try:
            self.joules += _possible(self._meter.stop())
        except Exception as problem:
            self.failures += 1
            self.problem = _one_line(problem)


def _possible(joules: Any) -> float:
    """Joules as a number; an error for what no meter can have read."""
    if isinstance(joules, (str, bytes)) or not 0 <= float(joules) <= MOST_JOULES:
        raise WorkerError("meter_failed", f"it read {joules!r:.40} J")
    return float(joules)


def _one_line(problem: Exception) -> str:
    return str(problem) if isinstance(problem, (AmpereError, WorkerError)) else first_line(problem)


_lock = RLock()
_running: dict[int, _Total] = {}  # by the id of a meter, while a budget follows it
