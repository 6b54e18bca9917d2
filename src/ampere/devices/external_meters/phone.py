"""A phone behind adb: its battery as the meter of the worker that runs on it.

    dumpsys battery         AC powered: false    USB powered: true    status: 2    voltage: 4012 (mV)
    current_now: -412345    from sysfs, in uA or mA depending on the driver; not every phone lets a shell read it

    the phone's battery --adb--> rows by this machine's clock       the worker on the phone: windows by its own clock
                                       \\____ the worker reports its time: both clocks at one moment ____/

adb is reached through adbutils (pip install 'ampere-energy[phone]').
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ampere.core.errors import MeterError
from ampere.meters.battery import Driver

from .bench import ALIGNED_FOR_SECONDS, PHONE, Ask, LoggedMeter
from .log import Log, LogSpec

FOLDER = "/sys/class/power_supply/battery"
COMMAND = "dumpsys battery; " + "; ".join(
    f"echo {file}: $(cat {FOLDER}/{file} 2>/dev/null)" for file in ("current_now", "voltage_now")
)
FEEDERS = ("AC", "USB", "Wireless", "Dock")
DISCHARGING, STATUSES = "3", {"1": "unknown", "2": "charging", "4": "not charging", "5": "full"}
SET_BY_HAND = "UPDATES STOPPED"  # with `dumpsys battery unplug`, which leaves the charger on
CURRENTS, VOLTAGES = ("current_now", "current now"), ("voltage_now", "voltage")


def watts_in(text: str, driver: Driver) -> float:
    """The watts in what a phone reports of its battery; MeterError where they do not show what it draws."""
    reported = dict(_pairs(text))
    refuse_unless_discharging(reported)
    current, voltage = _first(reported, CURRENTS), _first(reported, VOLTAGES)
    if current is None or voltage is None:
        raise MeterError("the phone does not report its battery's current over adb: use a bench meter")
    return driver.watts(abs(current), abs(voltage))


def refuse_unless_discharging(reported: dict[str, str]) -> None:
    """Raise unless the battery alone powers the phone."""
    if any(SET_BY_HAND in name for name in reported):
        raise MeterError("the phone's charger status was set by hand: run `adb shell dumpsys battery reset`")
    feeders = [name for name in FEEDERS if reported.get(f"{name} powered") == "true"]
    if feeders:
        raise MeterError(
            f"the phone is being charged ({feeders[0]}), so its battery does not show what it draws: unplug the cable "
            "and connect over Wi-Fi (adb tcpip 5555, then adb connect PHONE:5555)"
        )
    status = reported.get("status", "")
    if status != DISCHARGING:
        raise MeterError(
            f"the status of the phone's battery is {STATUSES.get(status, 'missing')}, not discharging: unplug it"
        )


def _pairs(text: str) -> list[tuple[str, str]]:
    cut = (line.partition(":") for line in text.splitlines())
    return [(name.strip(), value.strip()) for name, _, value in cut]


def _first(reported: dict[str, str], names: tuple[str, ...]) -> int | None:
    numbers = (reported[name] for name in names if name in reported)
    return next((int(text) for text in numbers if text.lstrip("-").isdigit()), None)


READY = "device"
STATES = {"unauthorized": "allow this computer on its screen", "offline": "plug it in again, or adb reconnect"}
ANSWER_SECONDS, LOOK_SECONDS = 5.0, 0.2


class Phone:
    """An Android phone that adb sees."""

    def __init__(self, serial: str = "") -> None:
        """Connect to the phone with this serial number, or else to the only one."""
        self._adb = _client()
        known = {info.serial: info.state for info in _ask(self._adb.list)}
        ready = [name for name in known if known[name] == READY and serial in ("", name)]
        if serial in known and not ready:
            raise MeterError(
                f"the phone {serial} is {known[serial]}: {STATES.get(known[serial], 'wait until it is ready')}"
            )
        if len(ready) != 1:
            there = f"adb sees {', '.join(known) or 'no phone'}"
            raise MeterError(f"{there}: connect one, and if there are several name one, as in --meter adb:SERIAL")
        self.serial, self._driver = ready[0], Driver()
        self._device = self._adb.device(self.serial)
        self.model = self._shell("getprop ro.product.model").strip() or "Android phone"

    def watts(self) -> float:
        return watts_in(self._shell(COMMAND), self._driver)

    def _shell(self, command: str) -> str:
        return str(_ask(lambda: self._device.shell(command, timeout=ANSWER_SECONDS)))


def phones_found() -> list[dict[str, Any]]:
    """Phones for a list of meters; empty unless an adb server is running, since none is started for it."""
    if find_spec("adbutils") is None or not _server_runs():
        return []
    try:
        return [_described(info.serial) for info in _ask(_client().list)]
    except MeterError as problem:  # a failing server must not hide other meters
        return [{"name": PHONE, "problem": str(problem), "check": None}]


def _described(serial: str) -> dict[str, Any]:
    found: dict[str, Any] = {"name": f"adb:{serial}", "problem": None, "check": None}
    try:
        phone = Phone(serial)
        found.update(described(phone), name=f"adb:{serial}")
        phone.watts()
    except MeterError as problem:
        found["problem"] = str(problem)
    return found


def _server_runs() -> bool:
    where = os.environ.get("ANDROID_ADB_SERVER_HOST", "127.0.0.1"), os.environ.get("ANDROID_ADB_SERVER_PORT", "5037")
    try:
        with socket.create_connection((where[0], int(where[1])), LOOK_SECONDS):
            return True
    except (OSError, ValueError):
        return False


def _client() -> Any:
    try:
        import adbutils
    except ImportError:
        raise MeterError("adbutils is not installed: pip install 'ampere-energy[phone]'") from None
    return adbutils.AdbClient(socket_timeout=ANSWER_SECONDS)


def _ask(question: Callable[[], Any]) -> Any:
    """The answer of adb, or a MeterError: adbutils raises many kinds of errors."""
    try:
        return question()
    except Exception as problem:
        line = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
        raise MeterError(
            f"adb does not answer ({line}): check that the phone is connected and that `adb devices` lists it"
        ) from None


SAMPLES_IN_WINDOW = 60
EVERY_SECONDS = 1.0  # asking costs the phone energy, and its gauge is hardly faster


class PhoneRows(Log):
    """A log whose rows a thread reads from the phone."""

    def __init__(self, phone: Phone) -> None:
        super().__init__(LogSpec(Path(f"adb:{phone.serial}"), {}))
        self._phone, self._problem = phone, ""
        self._fresh: deque[tuple[float, float]] = deque()
        self._thread: threading.Thread | None = None

    @property
    def interval(self) -> float:
        return EVERY_SECONDS

    def start(self) -> None:
        """Start the thread; also again after a failed sample, whose cause may be gone."""
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
    """The battery of a phone, read over adb by the host."""

    def __init__(self, serial: str = "") -> None:
        phone = Phone(serial)
        phone.watts()  # raises where it cannot be read
        self._rows, self._described = PhoneRows(phone), described(phone)
        super().__init__(self._rows, EVERY_SECONDS, SAMPLES_IN_WINDOW * EVERY_SECONDS)

    def describe(self) -> dict[str, Any]:
        return dict(self._described)

    def align(self, ask: Ask) -> None:
        """Pair both clocks at one moment, if it is due; no pattern is needed."""
        from .alignment import Clocks

        self._rows.start()
        self._clocks = self._clocks or Clocks()
        before = time.monotonic()
        there = _time_of(ask)
        here = (before + time.monotonic()) / 2
        if self._clocks.due(there, ALIGNED_FOR_SECONDS):
            self._clocks.add(there, here)


def _time_of(ask: Ask) -> float:
    answer: Mapping[str, Any] = ask({"do": "load", "pattern": [0], "seconds": 1e-3})
    return float(answer["ends"][-1])


def described(phone: Phone) -> dict[str, Any]:
    """The description of a phone's battery as a meter."""
    return {
        "name": PHONE,
        "measured": True,
        "scope": f"the whole phone, {phone.model} {phone.serial}, by its battery",
        "window_seconds": SAMPLES_IN_WINDOW * EVERY_SECONDS,
        "update_seconds": EVERY_SECONDS,
    }
