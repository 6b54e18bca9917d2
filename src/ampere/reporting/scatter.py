"""Estimated against measured on logarithmic axes: on the line is right, in the band within a tenth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .drawing import Area, Datum, Dot, Drawing, Line, Log, Mark, Plot, Text, around

BAND = 1.10


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


def draw(series: Sequence[Series], width: float, unit: str, words: Callable[[float], str]) -> Drawing:
    """Later series lie on top; words say a value in the unit of the axes."""
    low, high = around(v for s in series for spot in s.spots for v in (spot.measured, spot.estimated))
    plot = Plot(50, 34, width - 10, width - 10 - 50 + 34)
    across, up = Log(low, high, plot.left, plot.right), Log(low, high, plot.bottom, plot.top)
    marks: list[Mark] = [Area(_band(low, high, across, up), "band")]
    marks += plot.x_axis(across, words, f"measured, {unit}", 5)
    marks += plot.y_axis(up, words, f"estimated, {unit}", 6)
    marks.append(Line([(across(low), up(low)), (across(high), up(high))], "muted", 1.2))
    for one in series:
        marks += [Datum([_dot(one, across(s.measured), up(s.estimated))], s.tip) for s in one.spots]
    marks += _labels(series, plot)
    return Drawing(width, plot.bottom + 46, marks)


def _dot(series: Series, x: float, y: float) -> Dot:
    return Dot(x, y, 3.6, series.colour, "paper", series.shape)


def _band(low: float, high: float, across: Log, up: Log) -> list[tuple[float, float]]:
    """Cut where it would leave the plot."""
    above = [(low, low), (low, low * BAND), (high / BAND, high), (high, high)]
    below = [(high, high / BAND), (low * BAND, low)]
    return [(across(x), up(y)) for x, y in (*above, *below)]


def _labels(series: Sequence[Series], plot: Plot) -> list[Mark]:
    marks: list[Mark] = []
    for row, one in enumerate(reversed(series)):
        y = plot.top + 14 + 19 * row
        marks.append(Dot(plot.left + 14, y - 4, 4.2, one.colour, "paper", one.shape))
        marks.append(Text(plot.left + 24, y, one.label, 12, "ink"))
    corner = "shaded: within 10 %"
    marks.append(Text(plot.right - 4, plot.bottom - 8, corner, 11.5, "muted", "end"))
    return marks
