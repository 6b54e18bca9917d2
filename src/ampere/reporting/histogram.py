"""How often values of each size were seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .drawing import Datum, Drawing, Line, Linear, Mark, Plot, Rect, Text, room_for, whole


def draw(
    counts: Sequence[int],
    edges: Sequence[float],
    middle: float,
    width: float,
    words: Callable[[float], str],
    label: str,
    things: str,
) -> Drawing:
    """`middle` is the median, marked by a line; the last bin also holds what lies beyond it."""
    plot = Plot(40, 34, width - 12, 34 + 0.5 * width)
    across = Linear(edges[0], edges[-1], plot.left, plot.right)
    up = Linear(0, 1.18 * (max(counts) or 1), plot.bottom, plot.top, whole=True)
    marks: list[Mark] = plot.y_axis(up, whole, things, 4)
    for count, low, high in zip(counts, edges, edges[1:], strict=False):
        if not count:
            continue
        x, y = across(low), up(count)
        tip = f"{words(low)} to {words(high)}: {count} {things}"
        marks.append(Datum([Rect(x + 0.5, y, across(high) - x - 1, plot.bottom - y, "one")], tip))
    marks += plot.x_axis(across, words, label, 5, grid=False)
    x = across(min(middle, edges[-1]))
    marks.append(Line([(x, plot.top - 4), (x, plot.bottom)], "ink", 1.2, dashed=True))
    told = f"half are below {words(middle)}"
    beyond = x + 5 + room_for(told, 11.5) > width
    marks.append(Text(x - 5 if beyond else x + 5, plot.top + 6, told, 11.5, "ink", "end" if beyond else "start"))
    return Drawing(width, plot.bottom + 46, marks)
