"""What a meter does. Others can bring one: `tests/conformance/test_meters.py` tells when it counts."""

from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, Optional, Protocol

from ampere.core.errors import WorkerError, first_line

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


@contextmanager
def told_in_a_line(name: str) -> Iterator[None]:
    """Libraries and packages of others fail in ways of their own: each is this meter's failure, and no other's."""
    try:
        yield
    except WorkerError:
        raise
    except Exception as problem:
        raise meter_failed(
            f"{name} cannot be read ({first_line(problem)}): mend what brings it, or take another meter"
        ) from None
