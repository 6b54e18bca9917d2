"""Every experiment is one file in `experiments/`, found by itself; its drawing has the same name in `drawing/`."""

from __future__ import annotations

import difflib
import pkgutil
import textwrap
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from ampere.core.errors import UsageError
from ampere.reporting.plotting import need_matplotlib
from ampere.storage.files import storing

from .drawing import INK, MUTED
from .jobs import Job
from .plan import Plan
from .session import Session

Record = dict[str, Any]  # plain JSON

HERE = Path(__file__).parent


class ExperimentFile(Protocol):
    """What a file in `experiments/` holds."""

    __name__: str
    TITLE: str
    FIGURE: str  # of the paper; empty where it is ours

    def jobs(self, plan: Plan) -> Sequence[Job[Any]]:
        """All that must be measured, in order. Nothing is measured outside a job."""

    def records(self, lab: Session) -> Iterable[Record]:
        """Computed from what the jobs left."""


def names() -> list[str]:
    """Without importing any of them."""
    return sorted(module.name for module in pkgutil.iter_modules([str(HERE / "experiments")]))


def chosen(asked: Sequence[str]) -> list[str]:
    """What was asked for, each checked and once; all of them where nothing was."""
    for name in asked:
        find(name)
    return list(dict.fromkeys(asked)) or in_paper_order()


def in_paper_order() -> list[str]:
    """As the paper's figures come, then its tables, then ours."""

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


def has_drawing(name: str) -> bool:
    return (HERE / "drawing" / f"{name}.py").exists()


# Running experiments: what is still to be measured, how long that will take, and records to disk.
#
# experiments -> jobs, each once -> measured, one file each -> records, one file an experiment -> drawn

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


def jobs_left(names: Sequence[str], lab: Session) -> list[Job[Any]]:
    """Each once, however many experiments share it."""
    jobs = dict.fromkeys(job for name in names for job in find(name).jobs(lab.plan))
    return [job for job in jobs if not lab.done(job)]


def expected_seconds(names: Sequence[str], lab: Session) -> float:
    return sum(job.seconds for job in jobs_left(names, lab))


def run(names: Sequence[str], lab: Session, progress: Progress = lambda done, total, words: None) -> list[Result]:
    clock = _Clock(expected_seconds(names, lab), progress)
    return [_run(name, lab, clock) for name in names]


def _run(name: str, lab: Session, clock: _Clock) -> Result:
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


def stored(name: str, lab: Session) -> Result | None:
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


# From a stored result to files: PNG for looking, SVG for papers.

FORMATS = (".png", ".svg")
CHARACTERS_AN_INCH, NOTE_CHARACTERS_AN_INCH = 12, 18


def draw(result: Result, folder: Path) -> list[Path]:
    need_matplotlib()
    figure = figure_of(result)
    paths = [folder / f"{result.experiment}{ending}" for ending in FORMATS]
    for path in paths:
        with storing(path):
            figure.savefig(path, dpi=150)
    return paths


def figure_of(result: Result) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    FigureCanvasAgg(figure)
    import_module(f".{result.experiment}", __package__).draw(figure, result.records)
    width = figure.get_size_inches()[0]
    title = textwrap.fill(_title(result), int(CHARACTERS_AN_INCH * width))
    figure.suptitle(title, x=0.01, ha="left", color=INK, fontsize=11)
    origin = "\n".join(textwrap.wrap(_origin(result), int(NOTE_CHARACTERS_AN_INCH * width)))
    figure.supxlabel(origin, x=0.99, ha="right", color=MUTED, fontsize=7)
    return figure


def _title(result: Result) -> str:
    title = f"{result.title[:1].upper()}{result.title[1:]}"
    return f"{title} (the paper's {result.figure})" if result.figure else title


def _origin(result: Result) -> str:
    """Whose joules these are: measured, modelled or simulated."""
    meters = {name: device["meter"] for name, device in result.devices.items()}
    words = [f"{result.devices[name]['title']}: {_in_words(meter)}" for name, meter in meters.items()]
    return "   ".join(words) if len(words) <= 2 else "   ".join(dict.fromkeys(map(_in_words, meters.values())))


def _in_words(meter: dict[str, Any]) -> str:
    how = "simulated" if meter.get("simulated") else "measured" if meter["measured"] else "modelled"
    return f"joules {'replayed, ' if meter.get('replayed') else ''}{how} by {meter['name']} ({meter['scope']})"
