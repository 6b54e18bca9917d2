"""What a report says, before it is a page: sections of words, figures, charts and tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .drawing import Drawing


@dataclass(frozen=True)
class Table:
    """Columns whose name begins with `>` hold numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Chart:
    """`draw` draws at any width, so that words have their own size on a phone, a desk and paper."""

    key: str
    title: str
    caption: str  # how to read it, and where its joules come from
    draw: Callable[[float], Drawing]
    table: Table
    full: bool = False  # takes the page's whole width
    orders: tuple[tuple[str, str], ...] = ()  # other orders in which it can be shown, and their names


@dataclass(frozen=True)
class Section:
    key: str
    title: str
    words: tuple[str, ...] = ()
    figures: tuple[tuple[str, str], ...] = ()  # large, and what it is
    charts: tuple[Chart, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    table: Table | None = None


@dataclass(frozen=True)
class Report:
    title: str
    lead: str
    origin: str  # measured, modelled or simulated
    facts: tuple[tuple[str, str], ...]
    more_facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]

    @property
    def charts(self) -> list[Chart]:
        return [chart for section in self.sections for chart in section.charts]
