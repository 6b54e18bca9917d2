"""What a report says, before it is a page: sections of words, figures, charts and tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .charts import Bars, Curve, Heatmap, Histogram, Scatter, Shares

Plot = Bars | Curve | Heatmap | Histogram | Scatter | Shares


@dataclass(frozen=True)
class Table:
    """Columns whose name begins with `>` hold numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Chart:
    key: str
    title: str
    caption: str  # how to read it, and where its joules come from
    plot: Plot
    table: Table
    full: bool = False  # takes the page's whole width
    orders: tuple[tuple[str, str], ...] = ()  # other orders in which it can be shown, and their names
    inside: tuple[Chart, ...] = ()  # what its parts are made of, folded away on the page


@dataclass(frozen=True)
class Basis:
    """A section's words and charts per iteration or per sample."""

    key: str  # iteration or sample
    words: tuple[str, ...]
    charts: tuple[Chart, ...]


@dataclass(frozen=True)
class Section:
    key: str
    title: str
    words: tuple[str, ...] = ()
    figures: tuple[tuple[str, str], ...] = ()  # a large number, and what it is
    charts: tuple[Chart, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    table: Table | None = None
    bases: tuple[Basis, ...] = ()  # the reader switches between them; the first is shown


@dataclass(frozen=True)
class Report:
    title: str
    lead: str
    origin: str  # of the joules: measured, modelled or simulated
    setup: dict[str, Any]  # how training is done: runtime, optimizer, dtype, threads, batch of each model
    models: tuple[dict[str, Any], ...]  # the estimate of each model, as JSON
    facts: tuple[tuple[str, str], ...]
    more_facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]

    @property
    def charts(self) -> list[Chart]:
        """All charts except those inside others."""
        shown = [chart for section in self.sections for chart in section.charts]
        return [chart for s in self.sections for basis in s.bases for chart in basis.charts] + shown

    def to_json(self) -> dict[str, Any]:
        return {"title": self.title, "joules": self.origin, "setup": self.setup, "models": list(self.models)}
