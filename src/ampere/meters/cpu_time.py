"""Joules modelled as the CPU seconds of this process times the watts of a busy core."""

import time
from typing import Any, Dict, Optional

DEFAULT_WATTS_PER_CORE = 5.0
DEFAULT_ORIGIN = "the default, between a phone's big core (2-4 W) and a server's (5-10 W)"
NAME = "cpu-time"
SCOPE = " W per busy core"
CARD_SCOPE = " W of the busy accelerator"  # of device_time, where an accelerator trains


class CpuTimeMeter:
    """Models joules: CPU seconds of this process times the watts of a busy core."""

    update_seconds = 1e-6
    reading_unit = "J"

    def __init__(self, watts_per_core: float = DEFAULT_WATTS_PER_CORE) -> None:
        self._watts = watts_per_core
        self._started = 0

    def describe(self) -> Dict[str, Any]:
        return {"name": NAME, "measured": False, "scope": f"{self._watts:g}{SCOPE}"}

    def start(self) -> None:
        self._started = time.process_time_ns()

    def stop(self) -> float:
        return (time.process_time_ns() - self._started) * 1e-9 * self._watts

    def reading(self) -> float:
        return time.process_time_ns() * 1e-9 * self._watts


def watts_in(scope: str) -> Optional[float]:
    """The watts in the scope of a meter that models joules; None in any other scope."""
    number = next((scope[: -len(end)] for end in (SCOPE, CARD_SCOPE) if scope.endswith(end)), "")
    try:
        return float(number)
    except ValueError:
        return None


def scope_at(scope: str, watts: float) -> str:
    """The scope of a meter that models joules, with other watts."""
    return f"{watts:g}{CARD_SCOPE if scope.endswith(CARD_SCOPE) else SCOPE}"
