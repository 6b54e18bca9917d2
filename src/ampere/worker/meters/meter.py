"""What a meter does. Others can bring one: `tests/conformance/test_meters.py` tells when it counts."""

from typing import Any, Callable, Dict, Optional, Protocol

from ..errors import WorkerError

METER_FAILED = "meter_failed"


class Meter(Protocol):
    update_seconds: float  # how often it has something new to say
    reading_unit: str  # J of a counter, W of a sensor

    def describe(self) -> Dict[str, Any]:
        """name, whether its joules are measured, what they cover (scope); of a counter also window_seconds,
        of a gauge of power update_seconds too.
        """

    def start(self) -> None: ...

    def stop(self) -> float:
        """Joules since start. What cannot be told for sure is an error, never a number."""

    def reading(self) -> float:
        """What it shows just now: joules that only grow, or watts."""


Finder = Callable[[str], Optional[Meter]]  # given where sysfs is; None where there is no such meter


def meter_failed(message: str) -> WorkerError:
    return WorkerError(METER_FAILED, message)
