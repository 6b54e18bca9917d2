"""The data of a report's charts. The page's script draws them (`page/charts.js`), and `plotting` in files for papers.

Bars          Shares         Histogram     Scatter        Heatmap        Curve
name |===|-|  |====|==|=|    |             |   . /        |:::|          |   ___--
name |=|-|    a   b  c       |_#_#|#_      | . /.         |:|#|          |_--
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ampere.core import units

BAND = 1.10  # estimates within a tenth of the measurement
AIR = 1.15  # around the points of a logarithmic scale


@dataclass(frozen=True)
class Bar:
    name: str
    value: float
    label: str
    tip: str
    detail: str = ""  # muted, next to the name
    low: float | None = None
    high: float | None = None
    colour: str = "one"
    parts: tuple[tuple[str, float], ...] = ()  # colours and values that it is made of, if several
    hollow: bool = False
    other_rows: dict[str, int] = field(default_factory=dict)  # its row in another order


@dataclass(frozen=True)
class Reference:
    """A line across all bars to compare them with."""

    value: float
    label: str


@dataclass(frozen=True)
class Bars:
    """Horizontal bars with names, values, and intervals across their ends."""

    bars: Sequence[Bar]
    reference: Reference | None = None


@dataclass(frozen=True)
class Share:
    name: str
    share: float
    label: str
    tip: str
    colour: str


@dataclass(frozen=True)
class Shares:
    """One bar cut into shares that sum to 1, with every share named below it."""

    shares: Sequence[Share]


@dataclass(frozen=True)
class Histogram:
    """How often shares of each size were seen; the last bin also holds what lies beyond it."""

    counts: Sequence[int]
    edges: Sequence[float]
    median: float
    label: str
    things: str

    @property
    def note(self) -> str:
        return f"half are below {units.percent(self.median)}"


@dataclass(frozen=True)
class Spot:
    measured: float
    estimated: float
    tip: str


@dataclass(frozen=True)
class Series:
    """`label` is drawn in the plot in the series' own colour and shape, instead of a legend."""

    label: str
    spots: Sequence[Spot]
    colour: str
    shape: str = "circle"


@dataclass(frozen=True)
class Scatter:
    """Estimated against measured joules on logarithmic axes; later series lie on top."""

    series: Sequence[Series]
    unit_joules: float
    unit: str

    @property
    def bounds(self) -> tuple[float, float]:
        every = [v for one in self.series for spot in one.spots for v in (spot.measured, spot.estimated)]
        positive = [v for v in every if v > 0 and math.isfinite(v)] or [1.0]
        return min(positive) / AIR, max(positive) * AIR


@dataclass(frozen=True)
class Seen:
    """A place at which something was measured."""

    x: float
    y: float
    tip: str
    alone: bool  # measured by itself, not within a network


@dataclass(frozen=True)
class Heatmap:
    """Joules in ten steps of colour over two numbers of channels, with what was measured."""

    xs: Sequence[float]
    ys: Sequence[float]
    values: Sequence[Sequence[float]]  # a row for each y
    seen: Sequence[Seen]

    @property
    def bounds(self) -> tuple[float, float]:
        every = [v for row in self.values for v in row]
        return min(every), max(max(every), min(every) * 1.01)

    @property
    def unit(self) -> tuple[float, str]:
        return units.joules_unit(self.bounds[1] / 3)


def edges(centres: Sequence[float]) -> list[float]:
    """The edges of tiles: half way between neighbours."""
    if len(centres) < 2:
        return [centres[0] - 0.5, centres[0] + 0.5]
    between = [(a + b) / 2 for a, b in pairwise(centres)]
    return [2 * centres[0] - between[0], *between, 2 * centres[-1] - between[-1]]


@dataclass(frozen=True)
class Curve:
    """Joules with their 90 % band over one number of channels, and where it was measured."""

    xs: Sequence[float]
    values: Sequence[float]
    lows: Sequence[float]
    highs: Sequence[float]
    seen: Sequence[Seen]
    label: str  # which channels

    @property
    def unit(self) -> tuple[float, str]:
        return units.joules_unit(max(self.highs))

    @property
    def top(self) -> float:
        return max([*self.highs, *(s.y for s in self.seen)]) * 1.05
