"""A meter that the host reads, such as one on a bench: the worker only reports when its windows were measured."""

import time
from typing import Any, Dict, List, Optional

from ampere.core.errors import bad_request

from .checking import busy

NAME = "external"
UNKNOWN = float("nan")
LOAD_SECONDS_AT_MOST = 600.0
LEAST_UPDATE_SECONDS = 0.1  # clocks are aligned by a pattern, not to a row


class ExternalMeter:
    """Stands in for the host's meter in a worker; its readings are unknown (NaN)."""

    reading_unit = "W"

    def __init__(self, window_seconds: float, update_seconds: float) -> None:
        self._window_seconds, self._row_seconds = window_seconds, update_seconds
        self.update_seconds = max(LEAST_UPDATE_SECONDS, update_seconds)

    def describe(self) -> Dict[str, Any]:
        described = {"name": NAME, "measured": True, "scope": "read by the host"}
        return {**described, "window_seconds": self._window_seconds, "update_seconds": self._row_seconds}

    def start(self) -> None: ...

    def stop(self) -> float:
        return UNKNOWN

    def reading(self) -> float:
        return UNKNOWN


def external_meter(asked: str) -> Optional[ExternalMeter]:
    """The meter that `external:WINDOW:ROW` names, both in seconds; None for any other name."""
    name, _, seconds = asked.partition(":")
    if name != NAME:
        return None
    try:
        window, update = map(float, seconds.split(":"))
        return ExternalMeter(window, update)
    except ValueError:
        raise bad_request(f"{asked!r} needs the seconds of a window and of a row, as in {NAME}:3:0.05") from None


def load(request: Dict[str, Any]) -> Dict[str, Any]:
    """Work and rest by a pattern; returns when it began and when each part ended, by the clock of windows."""
    pattern, seconds = request.get("pattern"), request.get("seconds")
    if not isinstance(pattern, list) or not isinstance(seconds, (int, float)) or not seconds > 0:
        raise bad_request("a load needs a pattern such as [1, 0, 1] and the seconds of each part")
    if not 0 < len(pattern) * seconds <= LOAD_SECONDS_AT_MOST:
        raise bad_request(f"a load may take at most {LOAD_SECONDS_AT_MOST:.0f} s")
    began = time.perf_counter()
    ends: List[float] = []
    for number, works in enumerate(pattern, 1):
        left = began + number * seconds - time.perf_counter()
        (busy if works else time.sleep)(max(0.0, left))
        ends.append(time.perf_counter())
    return {"began": began, "ends": ends}
