"""Standard output for results, standard error for all else. Rich is imported when something is drawn."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PIPED_WIDTH = 120  # where there is no terminal to ask
BLOCKS = " ▏▎▍▌▋▊▉█"


def rows_that_fit(beside: int, least: int, most: int) -> int:
    """How many rows of a table the terminal shows together with so many other lines."""
    return max(least, min(most, shutil.get_terminal_size((80, most + beside)).lines - beside))


def print_json(record: Any) -> None:
    print(json.dumps(record, indent=2, allow_nan=False))


def notice(text: str, quiet: bool = False) -> None:
    if not quiet:
        print(text, file=sys.stderr, flush=True)


def console() -> Console:
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else PIPED_WIDTH)


def headline(text: str) -> None:
    console().print(text, style="bold")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Columns whose name begins with `>` are right-aligned; a name of `|` holds bars."""
    table = _grid()
    table.show_header = True
    for column in columns:
        right, bars = column.startswith(">"), column == "|"
        table.add_column(
            column.lstrip(">|"),
            justify="right" if right else "left",
            no_wrap=right or bars,
            overflow="ellipsis" if bars else "fold",
            style="cyan" if bars else "",
        )
    for row in rows:
        table.add_row(*row)
    _print(table)


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """A word and a sentence a line."""
    facts = list(facts)
    if not facts:
        return
    table = _grid()
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in facts:
        table.add_row(name, text)
    _print(table)


def _print(table: Table) -> None:
    """Without the spaces that fill a table's last column."""
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
