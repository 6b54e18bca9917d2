"""Experiments: found in `experiments/`, run job by job, kept as records, and drawn.

experiments -> jobs, each once -> measured, one file each -> records, one file per experiment -> drawn
"""

from __future__ import annotations

import difflib
import pkgutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from ampere.core import Meter
from ampere.core.errors import UsageError
from ampere.reporting.plotting import picture
from ampere.reporting.words import joules_sentence

from .jobs import Job, Record
from .plan import Plan
from .session import Session

HERE = Path(__file__).parent
VERSION: str = import_module("ampere").__version__
FORMATS = (".png", ".svg", ".pdf")  # for looking, and for papers
QUICK = "A quick run: too few networks to say which method is better where they differ by less than a factor."

Progress = Callable[[float, float, str], None]  # seconds of work done, of how many, in words


class ExperimentFile(Protocol):
    """What a file in `experiments/` holds."""

    __name__: str
    TITLE: str
    FIGURE: str  # of the paper; empty where it is ours

    def jobs(self, plan: Plan) -> Sequence[Job[Any]]:
        """All that must be measured, in order. Nothing is measured outside a job."""

    def records(self, session: Session) -> Iterable[Record]:
        """The results, computed from what the jobs measured."""

    def draw(self, figure: Any, records: Sequence[Record]) -> None:
        """Draws the records into a matplotlib figure."""


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


def names() -> list[str]:
    """The names of all experiments, without importing any of them."""
    return sorted(module.name for module in pkgutil.iter_modules([str(HERE / "experiments")]))


def chosen(wanted: Sequence[str]) -> list[str]:
    """The wanted experiments, each checked and once; all of them where none is named."""
    for name in wanted:
        find(name)
    return list(dict.fromkeys(wanted)) or in_paper_order()


def in_paper_order() -> list[str]:
    """All experiments: in the order of the paper's figures, then its tables, then ours."""

    def place(name: str) -> tuple[bool, str, int, str]:
        kind, _, number = find(name).FIGURE.split(",")[0].partition(" ")
        return not kind, kind, int(number or 0), name

    return sorted(names(), key=place)


def find(name: str) -> ExperimentFile:
    known = names()
    if name not in known:
        near = difflib.get_close_matches(name.lower().replace("-", "_"), known, n=3, cutoff=0.6)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
        raise UsageError(f"there is no experiment {name!r}: {hint}")
    experiment: ExperimentFile = import_module(f".experiments.{name}", __package__)
    return experiment


def jobs_left(names: Sequence[str], session: Session) -> list[Job[Any]]:
    """The jobs that are not measured yet, each once, however many experiments share it."""
    jobs = dict.fromkeys(job for name in names for job in find(name).jobs(session.plan))
    return [job for job in jobs if not session.done(job)]


def expected_seconds(names: Sequence[str], session: Session) -> float:
    return sum(job.seconds for job in jobs_left(names, session))


def run(names: Sequence[str], session: Session, progress: Progress = lambda done, total, words: None) -> list[Result]:
    clock = _Clock(expected_seconds(names, session), progress)
    return [_run(name, session, clock) for name in names]


def _run(name: str, session: Session, clock: _Clock) -> Result:
    experiment = find(name)
    jobs = experiment.jobs(session.plan)
    for job in jobs:
        if not session.done(job):
            session.do(job, lambda share, job=job: clock.show(name, job, share))  # type: ignore[misc]
            clock.finished(job)
    known = stored(name, session)
    needed = tuple(dict.fromkeys(job.name for job in jobs))
    if known and known.jobs == needed and known.version == VERSION:
        return known
    clock.show(name, None, 0.0)
    plan, devices = session.plan, dict.fromkeys(job.device for job in jobs)
    result = Result(
        name,
        experiment.TITLE,
        experiment.FIGURE,
        needed,
        {device: session.describe(device) for device in devices},
        plan.quick,
        plan.seed,
        VERSION,
        tuple(experiment.records(session)),
    )
    session.folder.keep(name, result.to_json())
    return result


def stored(name: str, session: Session) -> Result | None:
    found = session.folder.result(name)
    return Result.from_json(found) if found else None


class _Clock:
    """Progress in the seconds that jobs were expected to take; the time left follows how those came true."""

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


def draw(result: Result, folder: Path) -> list[Path]:
    """Draws a stored result, of an experiment or of the comparison between two runs."""
    module = (
        import_module(".between_runs", __package__) if result.experiment not in names() else find(result.experiment)
    )
    paths = [folder / f"{result.experiment}{ending}" for ending in FORMATS]
    title = f"{result.title[:1].upper()}{result.title[1:]}"
    with picture(paths, f"{title} (the paper's {result.figure})" if result.figure else title, _note(result)) as figure:
        module.draw(figure, result.records)
    return paths


def _note(result: Result) -> str:
    """Where the joules of each device come from, and how far a quick run may be trusted."""
    found = [f"{d['title']}: joules {joules_sentence(Meter(**d['meter']))}." for d in result.devices.values()]
    return "\n".join([*dict.fromkeys(found), *([QUICK] if result.quick else [])])
