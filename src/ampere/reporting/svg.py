"""A drawing of rectangles, lines and words as an SVG file in the colours of paper. All text is escaped here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from ampere.core.escaping import printable

from .colours import LIGHT

UNWRITABLE = re.compile("[\ufffe\uffff]")  # what XML cannot hold, though a terminal does not obey it
LONGEST = 2_000  # characters of one piece of text
FONT = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
CHARACTER = 0.58  # the width of one, as a share of the font's size


@dataclass(frozen=True)
class Rect:
    x: float
    y: float
    width: float
    height: float
    fill: str
    radius: float = 0.0


@dataclass(frozen=True)
class Line:
    x1: float
    y1: float
    x2: float
    y2: float
    stroke: str


@dataclass(frozen=True)
class Text:
    x: float
    y: float
    words: str
    size: float = 12.0
    fill: str = "ink"
    anchor: str = "start"


@dataclass(frozen=True)
class Drawing:
    width: float
    height: float
    marks: Sequence[Rect | Line | Text]


def room_for(words: str, size: float = 12.0) -> float:
    """About how many pixels wide words are, on the safe side."""
    return CHARACTER * size * len(words)


def shown(words: str) -> str:
    """Text of any origin as it may be shown: not too long, and nothing in it that a terminal or XML would obey."""
    cut = words if len(words) <= LONGEST else f"{words[:LONGEST]}…"
    return UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", printable(cut))


def escaped(words: str) -> str:
    return escape(shown(words))


def standalone(drawing: Drawing, title: str, description: str) -> str:
    """SVG as a file of its own."""
    size = f'width="{_n(drawing.width)}" height="{_n(drawing.height)}"'
    box = f'{size} viewBox="0 0 {_n(drawing.width)} {_n(drawing.height)}"'
    named = f"<title>{escaped(title)}</title><desc>{escaped(description)}</desc>"
    ground = _mark(Rect(0, 0, drawing.width, drawing.height, "paper"))
    body = "".join(map(_mark, drawing.marks))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" font-family="{FONT}" {box}>'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}{named}{ground}{body}</svg>\n'


def _mark(mark: Rect | Line | Text) -> str:
    if isinstance(mark, Rect):
        box = f'x="{_n(mark.x)}" y="{_n(mark.y)}" width="{_n(mark.width)}" height="{_n(mark.height)}"'
        return f'<rect {box} rx="{_n(mark.radius)}" fill="{LIGHT[mark.fill]}"/>'
    if isinstance(mark, Line):
        ends = f'x1="{_n(mark.x1)}" y1="{_n(mark.y1)}" x2="{_n(mark.x2)}" y2="{_n(mark.y2)}"'
        return f'<line {ends} stroke="{LIGHT[mark.stroke]}"/>'
    place = f'x="{_n(mark.x)}" y="{_n(mark.y)}" font-size="{_n(mark.size)}" text-anchor="{mark.anchor}"'
    return f'<text {place} fill="{LIGHT[mark.fill]}">{escaped(mark.words)}</text>'


def _n(value: float) -> str:
    """A number, to a tenth of a pixel."""
    return f"{round(value, 2 if abs(value) < 1 else 1):g}"
