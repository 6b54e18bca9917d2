"""A bench meter as a device's meter: the device works by a pattern, and the meter's log shows when that was.

pattern found in the log -> clocks aligned -> windows by the device's clock -> joules of the same spans in the log
      ^________________ repeated every few minutes, since clocks drift ________________|
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from threading import RLock
from typing import TYPE_CHECKING, Any

from ampere.core.errors import MeterError
from ampere.core.measurement import LOG, Window, windows_from_json
from ampere.meters.external import NAME as EXTERNAL

from .log import PREFIX, ClockWasSet, Log, LogSpec, busy_watts

if TYPE_CHECKING:
    from .alignment import Clocks

SAMPLES_IN_WINDOW = 60
LEAST_WINDOW_SECONDS = 0.1
ROWS_IN_PART, LEAST_PART_SECONDS = 4, 0.2  # of the pattern
PATTERNS_UNTIL_SECOND, ALIGNED_FOR_SECONDS = 4.0, 180.0  # lengths of a pattern until the rate of the clocks is learnt
REST_MARGIN = 0.15  # of a span at rest, at each end: clocks may be off by as much before their rate is known
PATIENCE_SECONDS = 20.0  # for rows that a meter buffers before it writes them
PATIENT_ROWS = 5
LOOK_SECONDS = 0.05
ATTEMPTS = 3
MEASURES = ("block", "yardstick")
PHONE = "adb"

Ask = Callable[[Mapping[str, Any]], Mapping[str, Any]]


class LoggedMeter:
    """A meter of the host that writes a log; it adds joules to the answers of a worker."""

    def __init__(self, log: Log, interval: float, window_seconds: float) -> None:
        self._log, self.interval, self.window_seconds = log, interval, window_seconds
        self._clocks: Clocks | None = None
        self._one_at_a_time = RLock()  # workers of one device must not disturb each other's windows

    @classmethod
    def of(cls, spec: LogSpec) -> LoggedMeter:
        """The meter of a log, as soon as the log has enough rows."""
        log = Log(spec)
        _skip_other_recordings(log)
        _wait(log, lambda: log.interval is not None, f"{spec.path} is not growing: start the meter's recording")
        interval = log.interval or 0.0
        return cls(log, interval, window_seconds(interval))

    @property
    def for_worker(self) -> str:
        """The value of AMPERE_METER for a worker that leaves the reading to this meter."""
        return f"{EXTERNAL}:{self.window_seconds:g}:{self.interval:g}"

    def describe(self) -> dict[str, Any]:
        path, every = self._log.spec.path, self.interval
        scope = f"all that the meter feeds, {path.name}, a row every {every:.3g} s"
        described = {"name": LOG, "measured": True, "scope": scope}
        return {**described, "window_seconds": self.window_seconds, "update_seconds": self.interval}

    def around(self, request: Mapping[str, Any], ask: Ask) -> dict[str, Any]:
        """The answer to a request, with the joules of its windows; repeated where the log failed."""
        if request["do"] not in MEASURES:
            return self.completed(ask(request))
        with self._one_at_a_time:
            for left in reversed(range(ATTEMPTS)):
                try:
                    if request.get("count", True):
                        self.align(ask)
                    return self.completed(ask(request))
                except ClockWasSet:
                    self._clocks = None
                    if not left:
                        raise
                except MeterError:
                    if not left or not self._aligned:  # a pattern that was never found is not a passing fault
                        raise
        raise AssertionError

    def completed(self, answer: Mapping[str, Any]) -> dict[str, Any]:
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
        """The rows of a worker's windows with their joules, where the worker reports when they began."""
        windows = windows_from_json(rows)
        if any(window.began is None for window in windows) or not windows:
            return [window.to_json() for window in windows]
        watts = self._watts(windows)
        return [window._replace(joules=watts * window.busy_seconds, began=None).to_json() for window in windows]

    def released(self) -> None:
        """Forget the alignment: a device was closed, and the next one may have another clock."""
        with self._one_at_a_time:
            self._clocks = None

    def _named(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """The answer with this meter in the place of `external`."""
        if "meter" not in answer:
            return {**answer}
        if answer["meter"]["name"] != EXTERNAL:
            raise MeterError(
                f"this worker reads its own meter, {answer['meter']['name']}, and leaves none to the host: start the "
                f"worker with AMPERE_METER={self.for_worker}, or connect to it over ssh"
            )
        return {**answer, "meter": self.describe()}

    def align(self, ask: Ask) -> None:
        """Align the clocks, if it is due: run the pattern on the device, and find it in the log."""
        from .alignment import PATTERN, Clocks, place_of

        self._clocks = self._clocks or Clocks()
        now = ask({"do": "load", "pattern": [0], "seconds": 1e-3})["ends"][-1]
        part = part_seconds(self.interval)
        if not self._clocks.due(now, ALIGNED_FOR_SECONDS, PATTERNS_UNTIL_SECOND * len(PATTERN) * part):
            return
        rows = self._log.advance()
        row = max(0, rows - len(PATTERN) * ROWS_IN_PART)
        done = ask({"do": "load", "pattern": list(PATTERN), "seconds": part})
        until, likeness = time.monotonic() + PATIENCE_SECONDS + len(PATTERN) * part, 0.0
        while time.monotonic() < until:
            self._log.advance()
            place = place_of(*self._log.since(row), done["ends"], done["began"])
            if place and place.certain:
                self._clocks.add(done["began"], place.began)
                return
            likeness = place.likeness if place else 0.0
            time.sleep(max(LOOK_SECONDS, part))
        if self._log.advance() == rows:
            raise self._stopped()
        raise MeterError(
            f"the load of the device does not show in {self._log.spec.path} (correlation {likeness:.2f}): check that "
            "the meter powers this device, that its recording is written at once, and that the device is otherwise idle"
        )

    @property
    def _aligned(self) -> bool:
        return self._clocks is not None and self._clocks.latest is not None

    def _watts(self, windows: Sequence[Window]) -> float:
        """Joules per busy second of windows, as from a worker's own meter."""
        last = max((window.began or 0.0) + window.wall_seconds for window in windows)
        return busy_watts(self._log, self._waited_for(last), windows)

    def _watts_at_rest(self, began: float, ended: float) -> float:
        """Watts of a span at rest; many meters show 0 for an idle device, so 0 is no error here."""
        clocks, margin = self._waited_for(ended), REST_MARGIN * (ended - began)
        return max(0.0, self._log.mean_watts(clocks.in_log(began + margin), clocks.in_log(ended - margin)))

    def _waited_for(self, device_seconds: float) -> Clocks:
        """The aligned clocks, once the log has a row after this moment."""
        assert self._clocks is not None
        last = self._clocks.in_log(device_seconds)
        _wait(self._log, lambda: self._log.latest > last, str(self._stopped()))
        if self._log.stepped(self._clocks.in_log(self._clocks.latest or 0.0), last):
            path = self._log.spec.path
            raise ClockWasSet(f"{path} lacks rows, or its clock was changed: let the meter record without a pause")
        return self._clocks

    def _stopped(self) -> MeterError:
        return MeterError(f"{self._log.spec.path} stopped growing: check that the meter still records")


def _skip_other_recordings(log: Log) -> None:
    """Read past earlier recordings in the same file."""
    while True:
        try:
            log.advance()
            return
        except ClockWasSet:
            continue


def _wait(log: Log, done: Callable[[], bool], otherwise: str) -> None:
    """Wait until done, as long as the log keeps growing; MeterError otherwise."""
    patience = max(PATIENCE_SECONDS, PATIENT_ROWS * (log.interval or 0.0))
    until, rows = time.monotonic() + patience, log.advance()
    while not done():
        if time.monotonic() > until:
            raise MeterError(otherwise)
        time.sleep(LOOK_SECONDS)
        if (now := log.advance()) > rows:
            until, rows = time.monotonic() + patience, now


def window_seconds(interval: float) -> float:
    """How long a window must be for rows at this interval."""
    return max(LEAST_WINDOW_SECONDS, SAMPLES_IN_WINDOW * interval)


def part_seconds(interval: float) -> float:
    """How long each part of the pattern must be for rows at this interval."""
    return max(LEAST_PART_SECONDS, ROWS_IN_PART * interval)


def logged_meter(asked: str) -> LoggedMeter | None:
    """The meter of that name, if it is a log or a phone's battery; None where a worker reads the meter."""
    return _opened(asked) if asked.startswith(PREFIX) or asked.partition(":")[0] == PHONE else None


@lru_cache(maxsize=4)
def _opened(asked: str) -> LoggedMeter:
    from .deferred import deferred_meter, is_deferred

    if is_deferred(asked):
        return deferred_meter(asked)
    if asked.startswith(PREFIX):
        return LoggedMeter.of(LogSpec.parse(asked))
    from .phone import PhoneMeter

    return PhoneMeter(asked.partition(":")[2])
