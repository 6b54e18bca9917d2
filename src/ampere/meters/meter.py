"""The interface of a meter. Other packages can add one; it must pass the tests of `ampere.meters.conformance`."""

import math
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, Optional, Protocol

from ampere.core.errors import WorkerError, first_line

METER_FAILED = "meter_failed"


class Meter(Protocol):
    """Reads, or models, the joules between `start` and `stop`."""

    update_seconds: float  # how often its reading changes
    reading_unit: str  # "J" for a counter, "W" for a sensor

    def describe(self) -> Dict[str, Any]:
        """Its name, whether joules are `measured`, and what they cover (`scope`).

        A meter that measures adds window_seconds; one that reads power adds update_seconds too.
        """

    def start(self) -> None: ...

    def stop(self) -> float:
        """Joules since start. An unreliable reading is an error, never a number."""

    def reading(self) -> float:
        """The current reading: joules that only grow, or watts."""


Finder = Callable[[str], Optional[Meter]]  # from the path of sysfs to the meter; None where there is none


def meter_failed(message: str) -> WorkerError:
    return WorkerError(METER_FAILED, message)


@contextmanager
def as_meter_failure(name: str) -> Iterator[None]:
    """Turn any exception in this block, also one of another package, into the failure of this meter."""
    try:
        yield
    except WorkerError:
        raise
    except Exception as problem:
        raise meter_failed(
            f"{name} cannot be read ({first_line(problem)}): repair the package it comes from, or use another meter"
        ) from None


class CheckedMeter:
    """A meter whose exceptions and impossible readings are failures of the meter, whoever wrote it."""

    def __init__(self, name: str, meter: Meter) -> None:
        self._name, self._meter = name, meter
        self.update_seconds, self.reading_unit = meter.update_seconds, meter.reading_unit

    def describe(self) -> Dict[str, Any]:
        return self._meter.describe()

    def start(self) -> None:
        with as_meter_failure(self._name):
            self._meter.start()

    def stop(self) -> float:
        return self._checked(self._meter.stop)

    def reading(self) -> float:
        return self._checked(self._meter.reading)

    def _checked(self, read: Callable[[], float]) -> float:
        with as_meter_failure(self._name):
            number = float(read())
        if not 0 <= number < math.inf:
            raise meter_failed(
                f"{self._name} read {number:g} {self.reading_unit}: repair its driver, or use another meter"
            )
        return number
