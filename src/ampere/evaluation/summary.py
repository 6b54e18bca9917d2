"""What an evaluation comes down to: the error of every method on every family, beside the noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .catalogue import Record
from .running import Result

SOURCE = "models_devices"  # the experiment whose records are the table


def summary_of(results: Sequence[Result]) -> dict[str, Any]:
    return {
        "experiments": [_short(result) for result in results],
        "mape": table_of(results),
    }


def table_of(results: Sequence[Result]) -> list[Record]:
    return [record for result in results if result.experiment == SOURCE for record in result.records]


def _short(result: Result) -> Record:
    return {
        "experiment": result.experiment,
        "title": result.title,
        "figure": result.figure,
        "records": len(result.records),
        "devices": result.devices,
    }
