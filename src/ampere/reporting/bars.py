"""Horizontal bars with names, values, and intervals across their ends.

wide                                        narrow
name  detail  |=======|--|      12.3 mJ     name detail        12.3 mJ
name  detail  |===|-|            5.1 mJ     |==============|---|
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .drawing import Datum, Drawing, Line, Linear, Mark, Point, Rect, Text, fitted, room_for

BAR = 15.0
ROW, NARROW_ROW = 25.0, 44.0
NAME, VALUE, DETAIL = 13.0, 12.5, 12.0
NARROW = 600.0  # pixels, below which names stand above their bars
MOST_FOR_NAMES = 0.36  # of the width


@dataclass(frozen=True)
class Bar:
    name: str
    value: float
    label: str
    tip: str
    detail: str = ""  # quietly beside the name
    low: float | None = None
    high: float | None = None
    colour: str = "one"
    hollow: bool = False
    other_rows: dict[str, int] = field(default_factory=dict)  # its row in another order


@dataclass(frozen=True)
class Reference:
    """A line across all bars that they are to be held against."""

    value: float
    label: str


@dataclass(frozen=True)
class Layout:
    """Where things stand in a row, in pixels."""

    row: float
    names: float  # room for them
    details: float  # where they begin
    left: float  # where bars begin
    right: float
    text: float  # the words' base line
    bar: float  # the bar's upper edge
    width: float


def draw(bars: Sequence[Bar], width: float, reference: Reference | None = None) -> Drawing:
    layout = _narrow(bars, width) if width < NARROW else _wide(bars, width)
    top = 26.0 if reference else 2.0
    largest = max(max(b.value, b.high or 0.0) for b in bars)
    scale = Linear(0.0, max(largest, reference.value if reference else 0.0) or 1.0, layout.left, layout.right)
    height = top + layout.row * len(bars) + 2
    marks: list[Mark] = [Line([(layout.left, top), (layout.left, height - 2)], "faint")]
    for row, bar in enumerate(bars):
        others = {order: top + layout.row * there for order, there in bar.other_rows.items()}
        marks.append(Datum(_bar(bar, scale, layout), bar.tip, top + layout.row * row, others))
    if reference:
        marks += _reference(reference, scale(reference.value), top, len(bars), layout)
    return Drawing(width, height, marks)


def _wide(bars: Sequence[Bar], width: float) -> Layout:
    names = min(max(room_for(b.name, NAME) for b in bars) + 10, MOST_FOR_NAMES * width)
    details = max(room_for(b.detail, DETAIL) for b in bars)
    values = max(room_for(b.label, VALUE) for b in bars)
    left = names + (details + 8 if details else 0)
    return Layout(ROW, names - 8, names, left, width - values - 12, ROW / 2 + 4.5, (ROW - BAR) / 2, width)


def _narrow(bars: Sequence[Bar], width: float) -> Layout:
    values = max(room_for(b.label, VALUE) for b in bars)
    return Layout(NARROW_ROW, width - values - 8, 0, 1, width - 6, 14, 20, width)


def _bar(bar: Bar, scale: Linear, layout: Layout) -> list[Mark]:
    name, middle = fitted(bar.name, layout.names, NAME), layout.bar + BAR / 2
    beside = layout.details or room_for(name, NAME) + 6
    room = (layout.left if layout.details else layout.names) - beside
    length = max(scale(bar.value) - layout.left, 1.0)
    marks: list[Mark] = [
        Text(0, layout.text, name, NAME, "ink"),
        Rect(layout.left, layout.bar, length, BAR, bar.colour, bar.colour, 1.5, 0.35 if bar.hollow else 1.0),
        Text(layout.width, layout.text, bar.label, VALUE, "ink", "end"),
    ]
    if bar.detail and room_for(bar.detail, DETAIL) <= room:
        marks.append(Text(beside, layout.text, bar.detail, DETAIL, "muted"))
    if bar.low is not None and bar.high is not None:
        low, high = scale(max(bar.low, 0.0)), scale(bar.high)
        whisker: list[list[Point]] = [[(low, middle), (high, middle)]]
        whisker += [[(x, middle - 3.5), (x, middle + 3.5)] for x in (low, high)]
        marks += [Line(line, "card", 3.6) for line in whisker]  # a rim that keeps it visible on its bar
        marks += [Line(line, "ink", 1.4) for line in whisker]
    return marks


def _reference(reference: Reference, x: float, top: float, rows: int, layout: Layout) -> list[Mark]:
    """Beside the bars only, never through a name."""
    beyond = x + room_for(reference.label, 12) > layout.width
    marks: list[Mark] = [
        Text(layout.width if beyond else x, 13, reference.label, 12, "ink", "end" if beyond else "start")
    ]
    for row in range(rows):
        y = top + row * layout.row + layout.bar
        marks.append(Line([(x, y - 5), (x, y + BAR + 5)], "ink", 1.4))
    return marks
