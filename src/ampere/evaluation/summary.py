"""What an evaluation comes down to: the error of every method on every family, beside the noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import mean
from typing import Any

from ampere.evaluation.case_study.verdict import Verdict, verdict_of

from .running import Record, Result

SOURCE = "models_devices"  # the experiment whose records are the table
DRIFT = "between_runs"  # the comparison with another run
CASE_STUDY = "pruning"


def summary_of(results: Sequence[Result]) -> dict[str, Any]:
    return {
        "experiments": [_short(result) for result in results],
        "mape": table_of(results),
        **({DRIFT: drift_of(compared)} if (compared := _of(DRIFT, results)) else {}),
        "pruning": [verdict.to_json() for verdict in verdicts_of(results)],
    }


def verdicts_of(results: Sequence[Result]) -> list[Verdict]:
    """Of the case study, one a device."""
    rows = _of(CASE_STUDY, results)
    devices = dict.fromkeys(row["device_title"] for row in rows)
    return [verdict_of(device, [row for row in rows if row["device_title"] == device]) for device in devices]


def table_of(results: Sequence[Result]) -> list[Record]:
    return _of(SOURCE, results)


def drift_of(records: Sequence[Record]) -> list[Record]:
    """By device and family: the mean change between two runs, and what it does to errors."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record["device"], record["family"]), []).append(record)
    return [_drift(rows) for rows in groups.values()]


def _drift(rows: list[Record]) -> Record:
    def mean_of(value: Callable[[Record], float]) -> float:
        return mean(map(value, rows))

    shared = ("device", "device_title", "family", "repeatability", "yardstick")
    return {
        **{key: rows[0][key] for key in shared},
        "networks": len(rows),
        "measured": mean_of(lambda r: r["joules"] / r["joules_before"] - 1),
        "measured_apart": mean_of(lambda r: abs(r["joules"] / r["joules_before"] - 1)),
        "estimated": mean_of(lambda r: r["estimate"] / r["estimate_before"] - 1),
        "estimated_apart": mean_of(lambda r: abs(r["estimate"] / r["estimate_before"] - 1)),
        "mape_before": mean_of(lambda r: abs(r["estimate_before"] / r["joules_before"] - 1)),
        "mape": mean_of(lambda r: abs(r["estimate"] / r["joules"] - 1)),
        "mape_carried": mean_of(lambda r: abs(r["estimate_carried"] / r["joules"] - 1)),
    }


def _of(experiment: str, results: Sequence[Result]) -> list[Record]:
    return [record for result in results if result.experiment == experiment for record in result.records]


def _short(result: Result) -> Record:
    return {
        "experiment": result.experiment,
        "title": result.title,
        "figure": result.figure,
        "records": len(result.records),
        "devices": result.devices,
    }
