"""Joules modelled as the device seconds of an accelerator times its watts when busy, where no meter reads its power."""

import time
from typing import Any, Callable, Dict

from .cpu_time import CARD_SCOPE

NAME = "device-time"


class DeviceTimeMeter:
    """Models joules: seconds that an accelerator was busy times its watts."""

    update_seconds = 1e-6
    reading_unit = "J"

    def __init__(self, watts: float, timer: Callable[[], Callable[[], float]]) -> None:
        self._watts, self._timer = watts, timer
        self._busy: Callable[[], float] = timer()
        self._began = time.monotonic()

    def describe(self) -> Dict[str, Any]:
        return {"name": NAME, "measured": False, "scope": f"{self._watts:g}{CARD_SCOPE}"}

    def start(self) -> None:
        self._busy = self._timer()

    def stop(self) -> float:
        return self._busy() * self._watts

    def reading(self) -> float:
        return (time.monotonic() - self._began) * self._watts
