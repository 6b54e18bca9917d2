"""The kinds of charts in a report: their data, and how each is drawn as marks.

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

from .drawing import (
    RAMP,
    Area,
    Datum,
    Dot,
    Drawing,
    Frame,
    Line,
    Linear,
    Log,
    Mark,
    Point,
    Rect,
    Text,
    Tiles,
    around,
    room_for,
    short_names,
    tick,
    whole,
)

BAR, ROW, NARROW_ROW = 15.0, 25.0, 44.0  # heights in pixels
NAME, VALUE, DETAIL, SMALL = 13.0, 12.5, 12.0, 11.5  # font sizes
NARROW = 600.0  # pixels, below which names stand above their bars
MOST_FOR_NAMES = 0.36  # of the width
STRIP, STRIP_LINE, GAP = 34.0, 24.0, 2.0
KEY_HEIGHT, KEY_ROOM = 9.0, 40.0  # of a heat map's colours
OVERLAP = 0.5  # pixels, so that no background shines through between tiles
BAND = 1.10  # estimates within a tenth of the measurement


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
class BarLayout:
    """Where things stand in a row, in pixels."""

    row: float
    names: float  # room for them
    details: float  # where they begin
    left: float  # where bars begin
    right: float
    text: float  # the words' base line
    bar: float  # the bar's upper edge
    width: float


@dataclass(frozen=True)
class Bars:
    """Horizontal bars with names, values, and intervals across their ends."""

    bars: Sequence[Bar]
    reference: Reference | None = None

    def draw(self, width: float) -> Drawing:
        bars, reference = self.bars, self.reference
        layout = self._narrow(width) if width < NARROW else self._wide(width)
        top = 26.0 if reference else 2.0
        largest = max(max(b.value, b.high or 0.0) for b in bars)
        scale = Linear(0.0, max(largest, reference.value if reference else 0.0) or 1.0, layout.left, layout.right)
        height = top + layout.row * len(bars) + 2
        marks: list[Mark] = [Line([(layout.left, top), (layout.left, height - 2)], "faint")]
        names = short_names([bar.name for bar in bars], layout.names, NAME)
        for row, (bar, name) in enumerate(zip(bars, names, strict=True)):
            others = {order: top + layout.row * there for order, there in bar.other_rows.items()}
            marks.append(Datum(_bar(bar, name, scale, layout), bar.tip, top + layout.row * row, others))
        if reference:
            marks += _reference(reference, scale(reference.value), top, len(bars), layout)
        return Drawing(width, height, marks)

    def _wide(self, width: float) -> BarLayout:
        names = min(max(room_for(b.name, NAME) for b in self.bars) + 10, MOST_FOR_NAMES * width)
        details = max(room_for(b.detail, DETAIL) for b in self.bars)
        values = max(room_for(b.label, VALUE) for b in self.bars)
        left = names + (details + 8 if details else 0)
        return BarLayout(ROW, names - 8, names, left, width - values - 12, ROW / 2 + 4.5, (ROW - BAR) / 2, width)

    def _narrow(self, width: float) -> BarLayout:
        values = max(room_for(b.label, VALUE) for b in self.bars)
        return BarLayout(NARROW_ROW, width - values - 8, 0, 1, width - 6, 14, 20, width)


def _bar(bar: Bar, name: str, scale: Linear, layout: BarLayout) -> list[Mark]:
    middle = layout.bar + BAR / 2
    detail = layout.details or room_for(name, NAME) + 6
    room = (layout.left if layout.details else layout.names) - detail
    marks: list[Mark] = [
        Text(0, layout.text, name, NAME, "ink"),
        *_pieces(bar, scale, layout),
        Text(layout.width, layout.text, bar.label, VALUE, "ink", "end"),
    ]
    if bar.detail and room_for(bar.detail, DETAIL) <= room:
        marks.append(Text(detail, layout.text, bar.detail, DETAIL, "muted"))
    if bar.low is not None and bar.high is not None:
        low, high = scale(max(bar.low, 0.0)), scale(bar.high)
        whisker: list[list[Point]] = [[(low, middle), (high, middle)]]
        whisker += [[(x, middle - 3.5), (x, middle + 3.5)] for x in (low, high)]
        marks += [Line(line, "card", 3.6) for line in whisker]  # a rim that keeps it visible on its bar
        marks += [Line(line, "ink", 1.4) for line in whisker]
    return marks


def _pieces(bar: Bar, scale: Linear, layout: BarLayout) -> list[Mark]:
    opacity, start, pieces = 0.35 if bar.hollow else 1.0, 0.0, []
    for colour, value in bar.parts or ((bar.colour, bar.value),):
        x, end = scale(start), scale(start + value)
        pieces.append(Rect(x, layout.bar, max(end - x, 1.0), BAR, colour, colour, 1.5, opacity))
        start += value
    return [*pieces]


def _reference(reference: Reference, x: float, top: float, rows: int, layout: BarLayout) -> list[Mark]:
    """A line in the bars' part of each row, never through a name."""
    beyond = x + room_for(reference.label, 12) > layout.width
    marks: list[Mark] = [
        Text(layout.width if beyond else x, 13, reference.label, 12, "ink", "end" if beyond else "start")
    ]
    for row in range(rows):
        y = top + row * layout.row + layout.bar
        marks.append(Line([(x, y - 5), (x, y + BAR + 5)], "ink", 1.4))
    return marks


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

    def draw(self, width: float) -> Drawing:
        marks: list[Mark] = []
        x, chip_x, chip_y = 0.0, 0.0, STRIP + 22
        for share in self.shares:
            length = share.share * width
            words = f"{share.name} {share.label}"
            room = room_for(words, NAME) + 30
            if chip_x and chip_x + room > width + 12:
                chip_x, chip_y = 0.0, chip_y + STRIP_LINE
            piece = Rect(x, 0, max(length - GAP, 0.8), STRIP, share.colour, radius=2)
            chip = Rect(chip_x, chip_y - 10, 11, 11, share.colour, radius=2)
            marks.append(Datum([piece, chip, Text(chip_x + 17, chip_y, words, NAME)], share.tip))
            x, chip_x = x + length, chip_x + room
        return Drawing(width, chip_y + 8, marks)


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

    def draw(self, width: float) -> Drawing:
        frame = Frame(40, 34, width - 12, 34 + 0.5 * width)
        across = Linear(self.edges[0], self.edges[-1], frame.left, frame.right)
        up = Linear(0, 1.18 * (max(self.counts) or 1), frame.bottom, frame.top, whole=True)
        marks: list[Mark] = frame.y_axis(up, whole, self.things, 4)
        for count, (low, high) in zip(self.counts, pairwise(self.edges), strict=True):
            if not count:
                continue
            x, y = across(low), up(count)
            tip = f"{units.percent(low)} to {units.percent(high)}: {count} {self.things}"
            marks.append(Datum([Rect(x + 0.5, y, across(high) - x - 1, frame.bottom - y, "one")], tip))
        marks += frame.x_axis(across, units.percent, self.label, 5, grid=False)
        x = across(min(self.median, self.edges[-1]))
        marks.append(Line([(x, frame.top - 4), (x, frame.bottom)], "ink", 1.2, dashed=True))
        beyond = x + 5 + room_for(self.note, SMALL) > width
        marks.append(
            Text(x - 5 if beyond else x + 5, frame.top + 6, self.note, SMALL, "ink", "end" if beyond else "start")
        )
        return Drawing(width, frame.bottom + 46, marks)


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
        return around(v for one in self.series for spot in one.spots for v in (spot.measured, spot.estimated))

    def draw(self, width: float) -> Drawing:
        low, high = self.bounds
        frame = Frame(50, 34, width - 10, width - 10 - 50 + 34)
        across, up = Log(low, high, frame.left, frame.right), Log(low, high, frame.bottom, frame.top)
        marks: list[Mark] = [Area(_band(low, high, across, up), "band")]
        marks += frame.x_axis(across, lambda v: tick(v / self.unit_joules), f"measured, {self.unit}", 5)
        marks += frame.y_axis(up, lambda v: tick(v / self.unit_joules), f"estimated, {self.unit}", 6)
        marks.append(Line([(across(low), up(low)), (across(high), up(high))], "muted", 1.2))
        for one in self.series:
            for s in one.spots:
                dot = Dot(across(s.measured), up(s.estimated), 3.6, one.colour, "paper", one.shape)
                marks.append(Datum([dot], s.tip))
        marks += self._labels(frame)
        return Drawing(width, frame.bottom + 46, marks)

    def _labels(self, frame: Frame) -> list[Mark]:
        marks: list[Mark] = []
        for row, one in enumerate(reversed(self.series)):
            y = frame.top + 14 + 19 * row
            marks.append(Dot(frame.left + 14, y - 4, 4.2, one.colour, "paper", one.shape))
            marks.append(Text(frame.left + 24, y, one.label, 12, "ink"))
        marks.append(Text(frame.right - 4, frame.bottom - 8, "shaded: within 10 %", SMALL, "muted", "end"))
        return marks


def _band(low: float, high: float, across: Log, up: Log) -> list[Point]:
    """The area within a tenth of the diagonal, cut where it would leave the plot."""
    above = [(low, low), (low, low * BAND), (high / BAND, high), (high, high)]
    below = [(high, high / BAND), (low * BAND, low)]
    return [(across(x), up(y)) for x, y in (*above, *below)]


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

    def draw(self, width: float) -> Drawing:
        frame = Frame(46, KEY_ROOM + 34, width - 12, KEY_ROOM + 34 + 0.72 * (width - 58))
        left, right = edges(self.xs), edges(self.ys)
        across = Linear(left[0], left[-1], frame.left, frame.right, whole=True)
        up = Linear(right[0], right[-1], frame.bottom, frame.top, whole=True)
        marks: list[Mark] = [*self._key(frame), *self._tiles(left, right, across, up)]
        marks += frame.x_axis(across, whole, "channels in", 6, grid=False)
        marks += frame.y_axis(up, whole, "channels out", 6, grid=False)
        for seen in self.seen:
            look = (4.2, "#ffffff", "#101418") if seen.alone else (2.8, "#101418", "#ffffff")
            marks.append(Datum([Dot(across(seen.x), up(seen.y), *look)], seen.tip))
        return Drawing(width, frame.bottom + 46, marks)

    def _tiles(self, left: list[float], right: list[float], across: Linear, up: Linear) -> list[Mark]:
        """Neighbours of one colour in a row are one tile."""
        by_step: dict[int, list[tuple[float, float, float, float]]] = {}
        low, high = self.bounds
        for j, row in enumerate(self.values):
            top, bottom = up(right[j + 1]), up(right[j])
            start = 0
            for i in range(1, len(row) + 1):
                if i == len(row) or colour_step(row[i], low, high) != colour_step(row[start], low, high):
                    x = across(left[start])
                    tile = (x, top, across(left[i]) - x + OVERLAP, bottom - top + OVERLAP)
                    by_step.setdefault(colour_step(row[start], low, high), []).append(tile)
                    start = i
        return [Tiles(tuple(tiles), RAMP[s]) for s, tiles in sorted(by_step.items())]

    def _key(self, frame: Frame) -> list[Mark]:
        scale, (unit_joules, unit) = Log(*self.bounds, frame.left, frame.right), self.unit
        part = (frame.right - frame.left) / len(RAMP)
        marks: list[Mark] = [
            Tiles(((frame.left + i * part, 2.0, part, KEY_HEIGHT),), colour) for i, colour in enumerate(RAMP)
        ]
        for value in scale.ticks(5):
            marks.append(Text(scale(value), KEY_HEIGHT + 17, tick(value / unit_joules), SMALL, "muted", "middle"))
        marks.append(Text(4, KEY_HEIGHT + 2, unit, 12, "muted"))
        return marks


def edges(centres: Sequence[float]) -> list[float]:
    """The edges of tiles: half way between neighbours."""
    if len(centres) < 2:
        return [centres[0] - 0.5, centres[0] + 0.5]
    between = [(a + b) / 2 for a, b in pairwise(centres)]
    return [2 * centres[0] - between[0], *between, 2 * centres[-1] - between[-1]]


def colour_step(value: float, low: float, high: float) -> int:
    """Which colour of the ramp a value has; equal ratios are equally many colours apart."""
    share = math.log(max(value, low) / low) / math.log(high / low)
    return min(len(RAMP) - 1, int(share * len(RAMP)))


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

    def draw(self, width: float) -> Drawing:
        unit_joules, unit = self.unit
        frame = Frame(46, 34, width - 12, 34 + 0.72 * (width - 58) + 46)
        across = Linear(min(self.xs), max(self.xs), frame.left, frame.right, whole=True)
        up = Linear(0.0, self.top, frame.bottom, frame.top)
        outline = [*zip(self.xs, self.highs, strict=True), *reversed(list(zip(self.xs, self.lows, strict=True)))]
        marks: list[Mark] = [*frame.x_axis(across, whole, self.label, 6, grid=False)]
        marks += frame.y_axis(up, lambda v: tick(v / unit_joules), f"energy, {unit}", 6)
        marks.append(Area([(across(x), up(max(y, 0.0))) for x, y in outline], "one", 0.22))
        marks.append(Line([(across(x), up(y)) for x, y in zip(self.xs, self.values, strict=True)], "one", 2.2))
        for seen in self.seen:
            # What was trained within a network has no height of its own, only a place on the axis.
            x, foot = across(seen.x), frame.bottom
            mark = (
                Dot(x, up(seen.y), 4.0, "paper", "ink") if seen.alone else Line([(x, foot - 8), (x, foot)], "ink", 1.5)
            )
            marks.append(Datum([mark], seen.tip))
        return Drawing(width, frame.bottom + 46, marks)
