"""A line with its 90 % band over one number of channels, and where it was measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .drawing import Area, Datum, Dot, Drawing, Line, Linear, Mark, Plot, whole
from .heatmap import Seen


@dataclass(frozen=True)
class Curve:
    xs: Sequence[float]
    values: Sequence[float]
    lows: Sequence[float]
    highs: Sequence[float]
    seen: Sequence[Seen]
    over: str  # what the channels are


def draw(curve: Curve, width: float, unit: str, words: Callable[[float], str]) -> Drawing:
    plot = Plot(46, 34, width - 12, 34 + 0.72 * (width - 58) + 46)
    across = Linear(min(curve.xs), max(curve.xs), plot.left, plot.right, whole=True)
    up = Linear(0.0, max([*curve.highs, *(s.y for s in curve.seen)]) * 1.05, plot.bottom, plot.top)
    outline = [*zip(curve.xs, curve.highs, strict=True), *reversed(list(zip(curve.xs, curve.lows, strict=True)))]
    marks: list[Mark] = [*plot.x_axis(across, whole, curve.over, 6, grid=False)]
    marks += plot.y_axis(up, words, f"energy, {unit}", 6)
    marks.append(Area([(across(x), up(max(y, 0.0))) for x, y in outline], "one", 0.22))
    marks.append(Line([(across(x), up(y)) for x, y in zip(curve.xs, curve.values, strict=True)], "one", 2.2))
    for seen in curve.seen:
        marks.append(Datum([_shown(seen, across(seen.x), up(seen.y), plot)], seen.tip))
    return Drawing(width, plot.bottom + 46, marks)


def _shown(seen: Seen, x: float, y: float, plot: Plot) -> Mark:
    """What was trained alone has a height of its own; what was trained within a network only a place on the axis."""
    return Dot(x, y, 4.0, "paper", "ink") if seen.alone else Line([(x, plot.bottom - 8), (x, plot.bottom)], "ink", 1.5)
