r"""A phone's battery as the meter of the worker on it.

the phone's battery --adb--> rows by this machine's clock       the worker on the phone: windows by its own clock
                                   \____ the worker is asked for its time: both clocks at one moment ____/
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ampere.errors import MeterError

from ..logs.log import Log
from ..logs.outside import ALIGNED_FOR_SECONDS, PHONE, Ask, LoggedMeter
from ..logs.spec import LogSpec
from .phone import Phone

SAMPLES_IN_WINDOW = 60
EVERY_SECONDS = 1.0  # asking costs the phone something, and its gauge is hardly faster


class PhoneRows(Log):
    """A log that a thread writes by asking the phone."""

    def __init__(self, phone: Phone) -> None:
        super().__init__(LogSpec(Path(f"adb:{phone.serial}"), {}))
        self._phone, self._problem = phone, ""
        self._fresh: deque[tuple[float, float]] = deque()
        self._thread: threading.Thread | None = None

    @property
    def interval(self) -> float:
        return EVERY_SECONDS

    def start(self) -> None:
        """Also after a sample that failed: what was wrong then may be over."""
        if self._thread is None or self._problem or not self._thread.is_alive():
            self._problem = ""
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()

    def advance(self) -> int:
        if self._problem:
            raise MeterError(self._problem)
        while self._fresh:
            seconds, watts = self._fresh.popleft()
            self._times.append(seconds)
            self._watts.append(watts)
        return len(self._times)

    def _watch(self) -> None:
        due = time.monotonic()
        try:
            while True:
                watts = self._phone.watts()
                self._fresh.append((time.monotonic(), watts))
                due = max(due + EVERY_SECONDS, time.monotonic())
                time.sleep(max(0.0, due - time.monotonic()))
        except MeterError as problem:
            self._problem = str(problem)


class PhoneMeter(LoggedMeter):
    def __init__(self, serial: str = "") -> None:
        phone = Phone(serial)
        phone.watts()  # or says why not
        self._rows, self._said = PhoneRows(phone), described(phone)
        super().__init__(self._rows, EVERY_SECONDS, SAMPLES_IN_WINDOW * EVERY_SECONDS)

    def describe(self) -> dict[str, Any]:
        return dict(self._said)

    def align(self, ask: Ask) -> None:
        from ..logs.aligning import Clocks

        self._rows.start()
        self._clocks = self._clocks or Clocks()
        before = time.monotonic()
        there = _time_of(ask)
        here = (before + time.monotonic()) / 2
        if self._clocks.due(there, ALIGNED_FOR_SECONDS):
            self._clocks.add(there, here)


def _time_of(ask: Ask) -> float:
    told: Mapping[str, Any] = ask({"do": "load", "pattern": [0], "seconds": 1e-3})
    return float(told["ends"][-1])


def described(phone: Phone) -> dict[str, Any]:
    return {
        "name": PHONE,
        "measured": True,
        "scope": f"the whole phone, {phone.model} {phone.serial}, by its battery",
        "window_seconds": SAMPLES_IN_WINDOW * EVERY_SECONDS,
        "update_seconds": EVERY_SECONDS,
    }
