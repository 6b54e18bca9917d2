"""The terminal: results on standard output, notices and progress on standard error. Rich is imported when needed."""

from __future__ import annotations

import json
import shutil
import signal
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampere.core.escaping import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.table import Table

    from ampere.api import Progress

PIPED_WIDTH = 100  # where there is no terminal whose width could be asked
BLOCKS = " ▏▎▍▌▋▊▉█"
LINE_SECONDS = 3.0  # between two lines of progress, where there is no terminal


def rows_that_fit(other_lines: int, least: int, most: int) -> int:
    """How many rows of a table the terminal can show together with so many other lines."""
    return max(least, min(most, shutil.get_terminal_size((80, most + other_lines)).lines - other_lines))


def print_json(record: Any) -> None:
    print(json.dumps(record, indent=2, allow_nan=False).replace("\x7f", "\\u007f"))


def notice(text: str, quiet: bool = False) -> None:
    if not quiet:
        print(printable(text), file=sys.stderr, flush=True)


def console() -> Console:
    from rich.console import Console

    piped = shutil.get_terminal_size((PIPED_WIDTH, 24)).columns  # COLUMNS, where that is set
    return Console(highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else piped)


def headline(text: str) -> None:
    console().print(printable(text), style="bold")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Columns whose name begins with `>` are right-aligned; a name of `|` holds bars."""
    table = _grid()
    table.show_header = True
    for column in columns:
        right, bars = column.startswith(">"), column == "|"
        table.add_column(
            printable(column.lstrip(">|")),
            justify="right" if right else "left",
            no_wrap=right or bars,
            overflow="ellipsis" if bars else "fold",
            style="cyan" if bars else "",
        )
    for row in rows:
        table.add_row(*map(printable, row))
    _print(table)


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """A word and a sentence a line. A path stays in one piece, so that it can be copied."""
    from rich.text import Text

    facts = [(printable(name), printable(text)) for name, text in facts]
    screen, indent = console(), max((len(name) for name, _ in facts), default=0) + 2
    for name, text in facts:
        lines = [line for part in text.splitlines() for line in _wrapped(part, screen.width - indent)] or [""]
        for number, line in enumerate(lines):
            begin = "" if number else name
            screen.print(Text.assemble((begin.ljust(indent) if line else begin, "dim"), line), soft_wrap=True)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, 20), break_long_words=False, break_on_hyphens=False)


def _print(table: Table) -> None:
    """Print a table without the spaces that fill its last column."""
    screen = console()
    with screen.capture() as drawn:
        screen.print(table)
    print("\n".join(line.rstrip() for line in drawn.get().splitlines()))


def bar(share: float, width: int = 20) -> str:
    eighths = round(8 * width * min(1.0, max(0.0, share)))
    return BLOCKS[8] * (eighths // 8) + BLOCKS[eighths % 8].strip()


def _grid() -> Table:
    from rich.table import Table

    return Table(box=None, show_header=False, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)


def plot_path(plot: str | None, no_plot: bool, usual: str, quiet: bool) -> Path | None:
    """Where to draw; None where nothing is drawn. A picture that was asked for by name needs matplotlib."""
    from ampere.reporting.plotting import can_plot, need_matplotlib

    if no_plot:
        return None
    if plot:
        need_matplotlib()
    elif not can_plot():
        notice("no picture: pip install 'ampere-energy[plot]' for one", quiet)
        return None
    return Path(plot or usual)


class Display:
    """Progress and notices of a command: a bar on a terminal, a line every few seconds elsewhere, nothing if quiet.

    An interrupt is raised where it comes, and again with the next progress: Python drops what is raised in a callback
    of its garbage collector, and JAX, for one, has such a callback.
    """

    def __init__(self, quiet: bool) -> None:
        self._quiet, self._on_terminal = quiet, sys.stderr.isatty()
        self._task, self._shown = "", 0.0
        self._bar: Bar | None = None
        self._interrupted = False

    def __enter__(self) -> Display:
        on_main = threading.current_thread() is threading.main_thread()  # which alone may set what an interrupt does
        if on_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        if signal.getsignal(signal.SIGINT) == self._interrupt:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _interrupt(self, *_: object) -> None:
        self._interrupted = True
        raise KeyboardInterrupt

    def notice(self, text: str) -> None:
        self._stop()
        notice(text, self._quiet)

    def progress(self, now: Progress) -> None:
        self.task(now.task)(now.done, now.total, now.text)

    def task(self, name: str) -> Callable[[float, float, str], None]:
        """What shows how much of a task is done, of how much, and a few words about it."""
        return lambda done, total, text: self._update(name, done, total, text)

    def _update(self, task: str, done: float, total: float, text: str) -> None:
        if self._interrupted:
            raise KeyboardInterrupt
        if self._quiet:
            return
        if task != self._task:
            self._stop()
            self._start(task)
        if self._bar:
            self._bar.update(self._bar.task_ids[0], completed=done, total=total, text=printable(text))
        elif time.monotonic() - self._shown >= LINE_SECONDS:
            self._shown = time.monotonic()
            notice(f"{task}: {100 * min(1.0, done / (total or 1)):.0f} %, {text}")

    def _start(self, task: str) -> None:
        self._task, self._shown = task, time.monotonic()
        if self._on_terminal:
            self._bar = _bar(printable(task))
        else:
            notice(f"{task} ...")

    def _stop(self) -> None:
        if self._bar:
            self._bar.stop()
        self._task, self._bar = "", None


def _bar(task: str) -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(30), TaskProgressColumn())
    text = TextColumn("{task.fields[text]}", style="dim", markup=False)
    # Drawing takes CPU time from what is being measured, so it is done seldom.
    bar = Bar(*columns, text, console=Console(stderr=True), refresh_per_second=4, transient=True)
    bar.add_task(task, total=None, text="starting")
    bar.start()
    return bar
