"""A drawing as PNG, mark by mark, with matplotlib's canvas: the same drawing as on the page, not a second one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .drawing import Area, Datum, Dot, Drawing, Line, Rect, Text, Tiles, on_paper
from .svg import corners

DOTS_PER_INCH = 100.0  # a pixel of a drawing is a hundredth of an inch
SHARPNESS = 2.5
POINT = 72.0 / DOTS_PER_INCH
ANCHORS = {"start": "left", "middle": "center", "end": "right"}


def save_png(drawing: Drawing, path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(
        figsize=(drawing.width / DOTS_PER_INCH, drawing.height / DOTS_PER_INCH), facecolor=on_paper("paper")
    )
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    right, bottom = drawing.left + drawing.width, drawing.top + drawing.height
    axes.set(xlim=(drawing.left, right), ylim=(bottom, drawing.top))
    for order, mark in enumerate(drawing.marks):
        DRAWERS[type(mark)](axes, mark, 0.0, order)
    figure.savefig(path, dpi=SHARPNESS * DOTS_PER_INCH)


def _rect(axes: Any, rect: Rect, down: float, order: int) -> None:
    from matplotlib.patches import Rectangle

    look: dict[str, Any] = {
        "facecolor": _fill(rect.fill),
        "edgecolor": _fill(rect.stroke),
        "alpha": rect.opacity,
        "linewidth": POINT,
    }
    axes.add_patch(Rectangle((rect.x, rect.y + down), rect.width, rect.height, zorder=order, **look))


def _tiles(axes: Any, tiles: Tiles, down: float, order: int) -> None:
    for x, y, width, height in tiles.tiles:
        _rect(axes, Rect(x, y, width, height, tiles.fill, tiles.fill), down, order)


def _line(axes: Any, line: Line, down: float, order: int) -> None:
    style = (0, (4, 3)) if line.dashed else "-"
    look = {"color": on_paper(line.stroke), "linewidth": line.width * POINT, "linestyle": style}
    axes.plot([x for x, _ in line.points], [y + down for _, y in line.points], zorder=order, **look)


def _area(axes: Any, area: Area, down: float, order: int) -> None:
    corners = [(x, y + down) for x, y in area.points]
    _polygon(axes, corners, order, facecolor=_fill(area.fill), alpha=area.opacity, linewidth=0)


def _dot(axes: Any, dot: Dot, down: float, order: int) -> None:
    from matplotlib.patches import Circle

    look = {"facecolor": _fill(dot.fill), "edgecolor": _fill(dot.stroke), "linewidth": POINT}
    if dot.shape == "circle":
        axes.add_patch(Circle((dot.x, dot.y + down), dot.radius, zorder=order, **look))
    else:
        _polygon(axes, [(x, y + down) for x, y in corners(dot)], order, **look)


def _polygon(axes: Any, points: list[tuple[float, float]], order: int, **look: Any) -> None:
    from matplotlib.patches import Polygon

    axes.add_patch(Polygon(points, closed=True, zorder=order, **look))


def _text(axes: Any, text: Text, down: float, order: int) -> None:
    axes.text(
        text.x,
        text.y + down,
        text.words,
        fontsize=text.size * POINT,
        color=on_paper(text.fill),
        ha=ANCHORS[text.anchor],
        va="baseline",
        weight="bold" if text.bold else "normal",
        rotation=90 if text.turned else 0,
        rotation_mode="anchor",
        parse_math=False,
        zorder=order,
    )


def _datum(axes: Any, datum: Datum, down: float, order: int) -> None:
    for mark in datum.marks:
        DRAWERS[type(mark)](axes, mark, down + datum.y, order)


DRAWERS: dict[type, Callable[[Any, Any, float, int], None]] = {
    Rect: _rect,
    Tiles: _tiles,
    Line: _line,
    Area: _area,
    Dot: _dot,
    Text: _text,
    Datum: _datum,
}


def _fill(role: str) -> str:
    return on_paper(role) if role else "none"
