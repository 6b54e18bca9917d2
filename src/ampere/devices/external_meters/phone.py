"""A phone behind adb: its battery as the meter of the worker that runs on it."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import deque
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ampere.core.errors import MeterError
from ampere.meters.battery import Driver

from .bench import ALIGNED_FOR_SECONDS, PHONE, Ask, LoggedMeter
from .log import Log, LogSpec

# What a phone says of its battery, as text: watts, or why they tell nothing.
#
# dumpsys battery         AC powered: false    USB powered: true    status: 2    voltage: 4012 (mV)
# current_now: -412345    of sysfs, uA or mA as the driver likes; a shell may not read it on every phone

FOLDER = "/sys/class/power_supply/battery"
COMMAND = "dumpsys battery; " + "; ".join(
    f"echo {file}: $(cat {FOLDER}/{file} 2>/dev/null)" for file in ("current_now", "voltage_now")
)
FEEDERS = ("AC", "USB", "Wireless", "Dock")
DISCHARGING, STATUSES = "3", {"1": "unknown", "2": "charging", "4": "not charging", "5": "full"}
SET_BY_HAND = "UPDATES STOPPED"  # with `dumpsys battery unplug`, which leaves the charger on
CURRENTS, VOLTAGES = ("current_now", "current now"), ("voltage_now", "voltage")


def watts_in(text: str, driver: Driver) -> float:
    said = dict(_pairs(text))
    refuse_unless_discharging(said)
    current, voltage = _first(said, CURRENTS), _first(said, VOLTAGES)
    if current is None or voltage is None:
        raise MeterError("the phone tells no current of its battery over adb: take a meter on the bench")
    return driver.watts(abs(current), abs(voltage))


def refuse_unless_discharging(said: dict[str, str]) -> None:
    if any(SET_BY_HAND in name for name in said):
        raise MeterError("what the phone says of its charger was set by hand: adb shell dumpsys battery reset")
    feeders = [name for name in FEEDERS if said.get(f"{name} powered") == "true"]
    if feeders:
        raise MeterError(
            f"the phone is charged ({feeders[0]}), so its battery tells nothing of what it draws: pull the cable and "
            "reach it over Wi-Fi (adb tcpip 5555, then adb connect PHONE:5555)"
        )
    status = said.get("status", "")
    if status != DISCHARGING:
        raise MeterError(
            f"the phone's battery says it is {STATUSES.get(status, 'nothing')}, not discharging: unplug it"
        )


def _pairs(text: str) -> list[tuple[str, str]]:
    cut = (line.partition(":") for line in text.splitlines())
    return [(name.strip(), value.strip()) for name, _, value in cut]


def _first(said: dict[str, str], names: tuple[str, ...]) -> int | None:
    numbers = (said[name] for name in names if name in said)
    return next((int(text) for text in numbers if text.lstrip("-").isdigit()), None)


# A phone behind adb, read through adbutils (pip install 'ampere-energy[phone]').

READY = "device"
STATES = {"unauthorized": "allow this computer on its screen", "offline": "plug it in again, or adb reconnect"}
ANSWER_SECONDS, LOOK_SECONDS = 5.0, 0.2


class Phone:
    def __init__(self, serial: str = "") -> None:
        """The only one that is there, unless its serial number is given."""
        self._adb = _client()
        known = {info.serial: info.state for info in _told(self._adb.list)}
        ready = [name for name in known if known[name] == READY and serial in ("", name)]
        if serial in known and not ready:
            raise MeterError(
                f"the phone {serial} is {known[serial]}: {STATES.get(known[serial], 'wait until it is up')}"
            )
        if len(ready) != 1:
            there = f"adb sees {', '.join(known) or 'no phone'}"
            raise MeterError(f"{there}: connect one, and name it where there are several, as in --meter adb:SERIAL")
        self.serial, self._driver = ready[0], Driver()
        self._device = self._adb.device(self.serial)
        self.model = str(self._said("getprop ro.product.model")).strip() or "Android phone"

    def watts(self) -> float:
        return watts_in(self._said(COMMAND), self._driver)

    def _said(self, command: str) -> str:
        return str(_told(lambda: self._device.shell(command, timeout=ANSWER_SECONDS)))


def phones_found() -> list[dict[str, Any]]:
    """For a list of meters; nothing is started for it, so only where an adb server runs already."""
    if find_spec("adbutils") is None or not _server_runs():
        return []
    try:
        return [_described(info.serial) for info in _told(_client().list)]
    except MeterError as problem:  # a server that is out of its mind says nothing of other meters
        return [{"name": PHONE, "problem": str(problem), "check": None}]


def _described(serial: str) -> dict[str, Any]:
    pass

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
        raise MeterError("adb is read through adbutils: pip install 'ampere-energy[phone]'") from None
    return adbutils.AdbClient(socket_timeout=ANSWER_SECONDS)


def _told(ask: Any) -> Any:
    """adbutils raises errors of its own, and those of sockets and of starting a server."""
    try:
        return ask()
    except Exception as problem:
        line = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
        raise MeterError(
            f"adb does not answer ({line}): is the phone connected, and does `adb devices` show it?"
        ) from None


# A phone's battery as the meter of the worker on it.
#
# the phone's battery --adb--> rows by this machine's clock       the worker on the phone: windows by its own clock
#                                    \____ the worker is asked for its time: both clocks at one moment ____/

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
        from .alignment import Clocks

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
