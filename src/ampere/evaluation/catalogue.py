"""Every experiment is one file in `experiments/`, found by itself; its drawing has the same name in `drawing/`."""

from __future__ import annotations

import difflib
import pkgutil
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from ampere.core.errors import UsageError

from .job import Job
from .lab import Lab
from .plan import Plan

Record = dict[str, Any]  # plain JSON

HERE = Path(__file__).parent


class ExperimentFile(Protocol):
    """What a file in `experiments/` holds."""

    __name__: str
    TITLE: str
    FIGURE: str  # of the paper; empty where it is ours

    def jobs(self, plan: Plan) -> Sequence[Job[Any]]:
        """All that must be measured, in order. Nothing is measured outside a job."""

    def records(self, lab: Lab) -> Iterable[Record]:
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
