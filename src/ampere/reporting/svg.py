"""A drawing as SVG. All text that people, models and files gave us is escaped here: it is never markup."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import escape

from ampere.core.escaping import printable

from .drawing import Area, Datum, Dot, Drawing, Line, Mark, Point, Rect, Text, Tiles, on_page, on_paper

UNWRITABLE = re.compile("[\ufffe\uffff]")  # what XML cannot hold, though a terminal does not obey it
LONGEST = 2_000  # characters of one piece of text
FONT = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"

Paint = Callable[[str], str]


def escaped(words: str) -> str:
    cut = words if len(words) <= LONGEST else f"{words[:LONGEST]}…"
    return escape(UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", printable(cut)))


def inline(drawing: Drawing, key: str, title: str, description: str, wide: str = "") -> str:
    """SVG for a page, with a title and a description for screen readers; `wide` names the screens that it is for."""
    named = f'<title id="{key}-t">{escaped(title)}</title><desc id="{key}-d">{escaped(description)}</desc>'
    about = f'class="chart {wide}" role="img" aria-labelledby="{key}-t" aria-describedby="{key}-d"'
    return f"<svg {about} {_box(drawing)}>{named}{_body(drawing, on_page)}</svg>"


def standalone(drawing: Drawing, title: str, description: str) -> str:
    """SVG as a file of its own, in the colours of paper."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" font-family="{FONT}" {_box(drawing)}>'
    ground = _rect(Rect(drawing.left, drawing.top, drawing.width, drawing.height, "paper"), on_paper)
    named = f"<title>{escaped(title)}</title><desc>{escaped(description)}</desc>"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}{named}{ground}{_body(drawing, on_paper)}</svg>\n'


def _box(drawing: Drawing) -> str:
    size = f'width="{_n(drawing.width)}" height="{_n(drawing.height)}"'
    return f'{size} viewBox="{_n(drawing.left)} {_n(drawing.top)} {_n(drawing.width)} {_n(drawing.height)}"'


def _body(drawing: Drawing, paint: Paint) -> str:
    return "".join(_mark(mark, paint) for mark in drawing.marks)


def _mark(mark: Mark, paint: Paint) -> str:
    return WRITERS[type(mark)](mark, paint)


def _rect(rect: Rect, paint: Paint) -> str:
    box = f'x="{_n(rect.x)}" y="{_n(rect.y)}" width="{_n(rect.width)}" height="{_n(rect.height)}"'
    round_ = f' rx="{_n(rect.radius)}"' if rect.radius else ""
    return f"<rect {box}{round_}{_painted(rect.fill, rect.stroke, paint)}{_faded(rect.opacity)}/>"


def _tiles(tiles: Tiles, paint: Paint) -> str:
    path = "".join(f"M{_n(x)} {_n(y)}h{_n(w)}v{_n(h)}h{_n(-w)}z" for x, y, w, h in tiles.tiles)
    return f'<path shape-rendering="crispEdges" d="{path}" fill="{paint(tiles.fill)}"/>'


def _line(line: Line, paint: Paint) -> str:
    dashes = ' stroke-dasharray="4 3"' if line.dashed else ""
    look = f'fill="none" stroke="{paint(line.stroke)}" stroke-width="{_n(line.width)}"{dashes}'
    return f'<path d="M{_joined(line.points)}" {look}/>'


def _area(area: Area, paint: Paint) -> str:
    return f'<path d="M{_joined(area.points)}z" fill="{paint(area.fill)}"{_faded(area.opacity)}/>'


def _dot(dot: Dot, paint: Paint) -> str:
    look = _painted(dot.fill, dot.stroke, paint)
    if dot.shape == "circle":
        return f'<circle cx="{_n(dot.x)}" cy="{_n(dot.y)}" r="{_n(dot.radius)}"{look}/>'
    return f'<path d="M{_joined(corners(dot))}z"{look}/>'


def corners(dot: Dot) -> list[Point]:
    """Shapes of about the same area as the circle."""
    x, y, r = dot.x, dot.y, dot.radius
    if dot.shape == "square":
        return [
            (x - 0.9 * r, y - 0.9 * r),
            (x + 0.9 * r, y - 0.9 * r),
            (x + 0.9 * r, y + 0.9 * r),
            (x - 0.9 * r, y + 0.9 * r),
        ]
    if dot.shape == "diamond":
        return [(x, y - 1.25 * r), (x + 1.25 * r, y), (x, y + 1.25 * r), (x - 1.25 * r, y)]
    return [(x, y - 1.25 * r), (x + 1.2 * r, y + 0.9 * r), (x - 1.2 * r, y + 0.9 * r)]


def _words(words: Text, paint: Paint) -> str:
    place = f'x="{_n(words.x)}" y="{_n(words.y)}" font-size="{_n(words.size)}" fill="{paint(words.fill)}"'
    anchor = f' text-anchor="{words.anchor}"' if words.anchor != "start" else ""
    weight = ' font-weight="600"' if words.bold else ""
    return f"<text {place}{anchor}{weight}>{escaped(words.words)}</text>"


def _datum(datum: Datum, paint: Paint) -> str:
    others = "".join(f' data-{order}="{_n(y)}"' for order, y in datum.other_y.items())
    orders = f' data-y="{_n(datum.y)}"{others}' if others else ""
    moved = f' transform="translate(0 {_n(datum.y)})"{orders}' if datum.y else orders
    inside = "".join(_mark(mark, paint) for mark in datum.marks)
    return f'<g class="datum"{moved}><title>{escaped(datum.tip)}</title>{inside}</g>'


WRITERS: dict[type, Callable[..., str]] = {
    Rect: _rect,
    Tiles: _tiles,
    Line: _line,
    Area: _area,
    Dot: _dot,
    Text: _words,
    Datum: _datum,
}


def _painted(fill: str, stroke: str, paint: Paint) -> str:
    outline = f' stroke="{paint(stroke)}"' if stroke else ""
    return f' fill="{paint(fill) if fill else "none"}"{outline}'


def _faded(opacity: float) -> str:
    return f' opacity="{_n(opacity)}"' if opacity < 1 else ""


def _joined(points: Sequence[Point]) -> str:
    return "L".join(f"{_n(x)} {_n(y)}" for x, y in points)


def _n(value: float) -> str:
    """A number, to a tenth of a pixel."""
    return f"{round(value, 2 if abs(value) < 1 else 1):g}"
