"""A phone behind adb, read through adbutils (pip install 'ampere-energy[phone]')."""

from __future__ import annotations

import os
import socket
from importlib.util import find_spec
from typing import Any

from ampere.errors import MeterError
from ampere.worker.meters.battery import Driver

from ..logs import PHONE
from .battery import COMMAND, watts_in

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
    from .meter import described

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
