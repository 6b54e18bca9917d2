"""Running experiments: what is still to be measured, how long that will take, and records to disk.

experiments -> jobs, each once -> measured, one file each -> records, one file an experiment -> drawn
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from .catalogue import Record, find
from .job import Job
from .lab import Lab

VERSION: str = import_module("ampere").__version__

Progress = Callable[[float, float, str], None]  # seconds of work done, of how many, in words


@dataclass(frozen=True)
class Result:
    """What an experiment left on disk."""

    experiment: str
    title: str
    figure: str
    jobs: tuple[str, ...]
    devices: dict[str, Any]
    quick: bool
    seed: int
    version: str
    records: tuple[Record, ...]

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "jobs": list(self.jobs), "records": list(self.records)}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Result:
        return cls(**{**record, "jobs": tuple(record["jobs"]), "records": tuple(record["records"])})


def jobs_left(names: Sequence[str], lab: Lab) -> list[Job[Any]]:
    """Each once, however many experiments share it."""
    jobs = dict.fromkeys(job for name in names for job in find(name).jobs(lab.plan))
    return [job for job in jobs if not lab.done(job)]


def expected_seconds(names: Sequence[str], lab: Lab) -> float:
    return sum(job.seconds for job in jobs_left(names, lab))


def run(names: Sequence[str], lab: Lab, progress: Progress = lambda done, total, words: None) -> list[Result]:
    clock = _Clock(expected_seconds(names, lab), progress)
    return [_run(name, lab, clock) for name in names]


def _run(name: str, lab: Lab, clock: _Clock) -> Result:
    experiment = find(name)
    jobs = experiment.jobs(lab.plan)
    for job in jobs:
        if not lab.done(job):
            lab.do(job, lambda share, job=job: clock.show(name, job, share))  # type: ignore[misc]
            clock.finished(job)
    known = stored(name, lab)
    wanted = tuple(dict.fromkeys(job.name for job in jobs))
    if known and known.jobs == wanted and known.version == VERSION:
        return known
    clock.show(name, None, 0.0)
    devices = {device: lab.describe(device) for device in dict.fromkeys(job.device for job in jobs)}
    result = Result(
        name,
        experiment.TITLE,
        experiment.FIGURE,
        wanted,
        devices,
        lab.plan.quick,
        lab.plan.seed,
        VERSION,
        tuple(experiment.records(lab)),
    )
    lab.folder.keep(name, result.to_json())
    return result


def stored(name: str, lab: Lab) -> Result | None:
    found = lab.folder.result(name)
    return Result.from_json(found) if found else None


class _Clock:
    """Work is counted in the seconds that jobs were expected to take; the time left by how those came true."""

    def __init__(self, total: float, progress: Progress) -> None:
        self._total, self._progress = total, progress
        self._done, self._began = 0.0, time.monotonic()

    def show(self, name: str, job: Job[Any] | None, share: float) -> None:
        done = self._done + min(1.0, share) * (job.seconds if job else 0.0)
        what = f"{name}: {job.name}" if job else f"{name}: computing"
        self._progress(done, self._total, f"{what}{self._left(done)}")

    def finished(self, job: Job[Any]) -> None:
        self._done += job.seconds

    def _left(self, done: float) -> str:
        if not self._total:
            return ""
        pace = (time.monotonic() - self._began) / done if done > 0.1 * self._total else 1.0
        return f", {max(0.0, self._total - done) * pace:.0f} s left"
