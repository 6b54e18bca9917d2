"""What a drawing is made of. Colours are roles of the theme, so one drawing serves light, dark and paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Point: TypeAlias = tuple[float, float]
SHAPES = ("circle", "square", "triangle", "diamond")


@dataclass(frozen=True)
class Rect:
    x: float
    y: float
    width: float
    height: float
    fill: str
    stroke: str = ""
    radius: float = 0.0
    opacity: float = 1.0


@dataclass(frozen=True)
class Tiles:
    """Many rectangles of one colour, side by side: (x, y, width, height) each."""

    tiles: tuple[tuple[float, float, float, float], ...]
    fill: str


@dataclass(frozen=True)
class Line:
    points: Sequence[Point]
    stroke: str
    width: float = 1.0
    dashed: bool = False


@dataclass(frozen=True)
class Area:
    points: Sequence[Point]
    fill: str
    opacity: float = 1.0


@dataclass(frozen=True)
class Dot:
    x: float
    y: float
    radius: float
    fill: str
    stroke: str = "paper"
    shape: str = "circle"


@dataclass(frozen=True)
class Text:
    x: float
    y: float
    words: str
    size: float = 12.0
    fill: str = "ink"
    anchor: str = "start"
    bold: bool = False
    turned: bool = False  # reads from below to above


@dataclass(frozen=True)
class Datum:
    """Marks that together show one figure of the data; `tip` says it in words."""

    marks: Sequence[Mark]
    tip: str
    y: float = 0.0
    other_y: Mapping[str, float] = field(default_factory=dict)  # where it lies in another order


Mark: TypeAlias = "Rect | Tiles | Line | Area | Dot | Text | Datum"


@dataclass(frozen=True)
class Drawing:
    width: float
    height: float
    marks: Sequence[Mark]
    left: float = 0.0  # of the paper's upper left corner
    top: float = 0.0

    @property
    def data(self) -> list[Datum]:
        return [mark for mark in self.marks if isinstance(mark, Datum)]


def room_for(words: str, size: float = 12.0) -> float:
    """About how wide words are, on the safe side for the fonts that pages and papers use."""
    return 0.58 * size * len(words)


def fitted(words: str, room: float, size: float = 12.0) -> str:
    """Names that are too long lose their middle: a module path tells most at its ends."""
    most = max(5, int(room / (0.58 * size)))
    if len(words) <= most:
        return words
    head = (most - 1) // 3
    return f"{words[:head]}…{words[len(words) - (most - 1 - head) :]}"
