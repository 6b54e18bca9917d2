"""Joules of a device's windows, in the log of a meter whose clock is another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...errors import MeterError
from .log import Log

SAME_SECONDS = 1e-3


class Following(Protocol):
    """How the log's clock follows the device's."""

    @property
    def rate(self) -> float: ...

    def in_log(self, device_seconds: float) -> float: ...


def cpu_watts(log: Log, clocks: Following, spans: Sequence[Sequence[float]]) -> float:
    """Joules a second of CPU time, as the worker's own meters tell them."""
    places = _joined([(clocks.in_log(began), clocks.in_log(ended)) for began, ended, _ in spans])
    joules = sum(log.mean_watts(began, ended) * (ended - began) for began, ended in places) / clocks.rate
    if not joules > 0:
        raise MeterError(f"{log.spec.path} tells {joules:.3g} J of training: check its columns and units")
    return joules / sum(cpu for _, _, cpu in spans)


def _joined(places: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Windows that follow each other at once, as one: steps of the yardstick are shorter than a row."""
    joined = [places[0]]
    for began, ended in places[1:]:
        if began - joined[-1][1] < SAME_SECONDS:
            joined[-1] = joined[-1][0], ended
        else:
            joined.append((began, ended))
    return joined
