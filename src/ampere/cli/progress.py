"""How far a long command is: a bar on a terminal, a line every few seconds elsewhere, nothing when quiet."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ampere.core.units import percent, seconds

from .console import notice

if TYPE_CHECKING:
    from ampere.profiling.measuring import MeasureProgress
    from ampere.profiling.strategies.strategy import Progress

LINE_SECONDS = 3.0

Report = Callable[[float, float, str], None]  # done, of how much, in words


@contextmanager
def reporting(title: str, quiet: bool) -> Iterator[Report]:
    if quiet:
        yield lambda done, total, words: None
    elif sys.stderr.isatty():
        with _bar(title) as report:
            yield report
    else:
        notice(f"{title} ...")
        yield _lines(title)


@contextmanager
def _bar(title: str) -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(30), TaskProgressColumn())
    words = TextColumn("{task.fields[words]}", style="dim", markup=False)
    # Drawing costs the machine that is being measured, so it is done seldom.
    with Progress(*columns, words, console=Console(stderr=True), refresh_per_second=4, transient=True) as progress:
        task = progress.add_task(title, total=None, words="starting")
        yield lambda done, total, words: progress.update(task, completed=done, total=total, words=words)


def _lines(title: str) -> Report:
    last = [time.monotonic()]

    def report(done: float, total: float, words: str) -> None:
        if time.monotonic() - last[0] >= LINE_SECONDS:
            last[0] = time.monotonic()
            notice(f"{title}: {100 * min(1.0, done / total):.0f} %, {words}")

    return report


def of_profiling(report: Report) -> Callable[[Progress], None]:
    def show(p: Progress) -> None:
        error = "" if p.expected_error is None else f", expected error {percent(p.expected_error)}"
        left = max(0.0, p.seconds - p.elapsed)
        compiling = f", {p.compile_seconds:.0f} s spent compiling" if p.compile_seconds else ""
        report(p.elapsed, p.seconds, f"{left:.0f} s left, {p.experiments} measurements{error}{compiling}")

    return show


def of_measuring(report: Report) -> Callable[[MeasureProgress], None]:
    return lambda p: report(p.elapsed, p.seconds, f"round {p.round}")


def of_validating(report: Report) -> Callable[[int, int], None]:
    began = time.monotonic()

    def show(done: int, total: int) -> None:
        left = (time.monotonic() - began) / done * (total - done)
        words = f", {seconds(left)} left" if done > 0.05 * total else ""  # the first block waits for the worker
        report(done, total, f"{done} of {total} blocks{words}")

    return show
