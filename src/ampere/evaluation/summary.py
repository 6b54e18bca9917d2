"""The summary of an evaluation: the error of every method on every family, drift, and the case study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ampere.baselines.answers import unavailable
from ampere.evaluation.case_study.verdict import Verdict, verdict_of

from .between_runs import DRIFT, drift_of
from .jobs import Record
from .running import Result

SOURCE = "models_devices"  # the experiment whose records are the table
CASE_STUDY = "pruning"


def summary_of(results: Sequence[Result]) -> dict[str, Any]:
    return {
        "experiments": [_short(result) for result in results],
        "mape": table_of(results),
        **({DRIFT: drift_of(compared)} if (compared := _of(DRIFT, results)) else {}),
        "unavailable": unavailable(),
        "threads": {r["family"]: r["fewest_joules_on"] for r in _of("threads", results)},
        "pruning": [verdict.to_json() for verdict in verdicts_of(results)],
    }


def verdicts_of(results: Sequence[Result]) -> list[Verdict]:
    """The verdict of the case study on each device."""
    rows = _of(CASE_STUDY, results)
    devices = dict.fromkeys(row["device_title"] for row in rows)
    return [verdict_of(device, [row for row in rows if row["device_title"] == device]) for device in devices]


def table_of(results: Sequence[Result]) -> list[Record]:
    return _of(SOURCE, results)


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
