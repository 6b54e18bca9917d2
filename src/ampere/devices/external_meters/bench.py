"""A bench meter as a device's meter: the device works by a pattern, and its log shows when that was.

pattern found in the log -> clocks aligned -> a block's windows by the device's clock -> joules of the same spans there
      ^__________________ again every few minutes, since clocks drift __________________|
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from threading import RLock
from typing import TYPE_CHECKING, Any

from ampere.core.errors import MeterError
from ampere.core.measurement import LOG, Window, windows_from_json

from .log import PREFIX, ClockWasSet, Log, LogSpec, busy_watts

if TYPE_CHECKING:
    from .alignment import Clocks

SAMPLES_IN_WINDOW = 60
LEAST_WINDOW_SECONDS = 0.1
ROWS_IN_PART, LEAST_PART_SECONDS = 4, 0.2  # of the pattern
ALIGNED_FOR_SECONDS = 180.0
PATIENCE_SECONDS = 20.0  # for rows that a meter keeps back before it writes them
PATIENT_ROWS = 5
LOOK_SECONDS = 0.05
ATTEMPTS = 3
MEASURES = ("block", "yardstick")
PHONE = "adb"

Ask = Callable[[Mapping[str, Any]], Mapping[str, Any]]


class LoggedMeter:
    def __init__(self, log: Log, interval: float, window_seconds: float) -> None:
        self._log, self.interval, self.window_seconds = log, interval, window_seconds
        self._clocks: Clocks | None = None
        self._one_at_a_time = RLock()  # workers of one device must not disturb each other's windows

    @classmethod
    def of(cls, spec: LogSpec) -> LoggedMeter:
        """As soon as it has rows enough."""
        log = Log(spec)
        _skip_other_recordings(log)
        _wait(log, lambda: log.interval is not None, f"{spec.path} does not grow: start the meter's recording")
        interval = log.interval or 0.0
        return cls(log, interval, window_seconds(interval))

    @property
    def for_worker(self) -> str:
        """What a worker is told of it."""
        return f"outside:{self.window_seconds:g}:{self.interval:g}"

    def describe(self) -> dict[str, Any]:
        path, every = self._log.spec.path, self.interval
        scope = f"all that the meter feeds, {path.name}, a row every {every:.3g} s"
        said = {"name": LOG, "measured": True, "scope": scope}
        return {**said, "window_seconds": self.window_seconds, "update_seconds": self.interval}

    def around(self, request: Mapping[str, Any], ask: Ask) -> dict[str, Any]:
        """Asks, and adds the joules of the windows that it tells of; once more where the log failed."""
        if request["do"] not in MEASURES:
            return self.told(ask(request))
        with self._one_at_a_time:
            for left in reversed(range(ATTEMPTS)):
                try:
                    if request.get("count", True):
                        self.align(ask)
                    return self.told(ask(request))
                except ClockWasSet:
                    self._clocks = None
                    if not left:
                        raise
                except MeterError:
                    if not left or not self._aligned:  # what was never seen is no passing fault
                        raise
        raise AssertionError

    def told(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """A worker's answer with the joules of its windows, and this meter in the place of `external`."""
        filled = self._named(answer)
        if "target" in answer:
            for name in ("target", "yardstick"):
                filled[name] = self._read(answer[name])
        elif answer.get("windows"):
            filled["joules"] = self._watts(windows_from_json(answer["windows"])) * answer["busy_seconds"]
            filled["watts_idle"] = self._watts_at_rest(*answer["rest"])
        return filled

    def _read(self, rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """The rows of a worker's windows with their joules, where it reports when they were."""
        windows = windows_from_json(rows)
        if any(window.began is None for window in windows) or not windows:
            return [window.to_json() for window in windows]
        watts = self._watts(windows)
        return [window._replace(joules=watts * window.busy_seconds, began=None).to_json() for window in windows]

    def released(self) -> None:
        """A device that used it is closed; the next one may have another clock."""
        with self._one_at_a_time:
            self._clocks = None

    def _named(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """With this meter in the place of `outside`."""
        if "meter" not in answer:
            return {**answer}
        if answer["meter"]["name"] != "outside":
            raise MeterError(
                f"this worker reads {answer['meter']['name']} itself and leaves no meter to this end: start it "
                f"with AMPERE_METER={self.for_worker}, or reach it over ssh"
            )
        return {**answer, "meter": self.describe()}

    def align(self, ask: Ask) -> None:
        """Where it was not done lately: makes the device work by the pattern, and looks for that in the log."""
        from .alignment import PATTERN, Clocks, place_of

        self._clocks = self._clocks or Clocks()
        now = ask({"do": "load", "pattern": [0], "seconds": 1e-3})["ends"][-1]
        if not self._clocks.due(now, ALIGNED_FOR_SECONDS):
            return
        part = part_seconds(self.interval)
        row = max(0, self._log.advance() - len(PATTERN) * ROWS_IN_PART)
        done = ask({"do": "load", "pattern": list(PATTERN), "seconds": part})
        until, likeness = time.monotonic() + PATIENCE_SECONDS + len(PATTERN) * part, 0.0
        while time.monotonic() < until:
            self._log.advance()
            place = place_of(*self._log.since(row), done["ends"], done["began"])
            if place and place.sure:
                self._clocks.add(done["began"], place.began)
                return
            likeness = place.likeness if place else 0.0
            time.sleep(max(LOOK_SECONDS, part))
        raise MeterError(
            f"the load of the device is not seen in {self._log.spec.path} (correlation {likeness:.2f}): does this "
            "meter feed the device, is its recording written at once, and is the device quiet?"
        )

    @property
    def _aligned(self) -> bool:
        return self._clocks is not None and self._clocks.latest is not None

    def _watts(self, windows: Sequence[Window]) -> float:
        """Joules a busy second, as the worker's own meters report them."""
        last = max((window.began or 0.0) + window.wall_seconds for window in windows)
        return busy_watts(self._log, self._waited_for(last), windows)

    def _watts_at_rest(self, began: float, ended: float) -> float:
        """0 is what many a meter tells of a device that does nothing."""
        clocks = self._waited_for(ended)
        return self._log.mean_watts(clocks.in_log(began), clocks.in_log(ended))

    def _waited_for(self, device_seconds: float) -> Clocks:
        """Until the log has a row after that."""
        assert self._clocks is not None
        last = self._clocks.in_log(device_seconds)
        path = self._log.spec.path
        _wait(self._log, lambda: self._log.latest > last, f"{path} stopped growing: the meter is gone")
        if self._log.stepped(self._clocks.in_log(self._clocks.latest or 0.0), last):
            raise ClockWasSet(f"{path} lacks rows, or its clock was set: let the meter record without a pause")
        return self._clocks


def _skip_other_recordings(log: Log) -> None:
    """Those that ended before, in the same file."""
    while True:
        try:
            log.advance()
            return
        except ClockWasSet:
            continue


def _wait(log: Log, done: Callable[[], bool], otherwise: str) -> None:
    """As long as it grows."""
    patience = max(PATIENCE_SECONDS, PATIENT_ROWS * (log.interval or 0.0))
    until, rows = time.monotonic() + patience, log.advance()
    while not done():
        if time.monotonic() > until:
            raise MeterError(otherwise)
        time.sleep(LOOK_SECONDS)
        if (now := log.advance()) > rows:
            until, rows = time.monotonic() + patience, now


def window_seconds(interval: float) -> float:
    return max(LEAST_WINDOW_SECONDS, SAMPLES_IN_WINDOW * interval)


def part_seconds(interval: float) -> float:
    """Of the pattern."""
    return max(LEAST_PART_SECONDS, ROWS_IN_PART * interval)


def logged_meter(asked: str) -> LoggedMeter | None:
    """The meter of that name, if it is a log or a phone's battery; None where a worker reads the meter."""
    return _opened(asked) if asked.startswith(PREFIX) or asked.partition(":")[0] == PHONE else None


@lru_cache(maxsize=4)
def _opened(asked: str) -> LoggedMeter:
    from .deferred import asked_later, later_meter

    if asked_later(asked):
        return later_meter(asked)
    if asked.startswith(PREFIX):
        return LoggedMeter.of(LogSpec.parse(asked))
    from .phone import PhoneMeter

    return PhoneMeter(asked.partition(":")[2])
