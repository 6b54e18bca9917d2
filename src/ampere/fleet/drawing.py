"""A plan as a Gantt picture: a row for each device, a bar for each job, as SVG."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ampere.core import units
from ampere.reporting.colours import SERIES
from ampere.reporting.svg import Drawing, Line, Rect, Text, room_for, standalone
from ampere.storage.files import write_whole

from .scheduling import Plan

WIDTH, ROW, BAR, MARGIN, AXIS = 900.0, 26.0, 18.0, 16.0, 28.0
MOST_ROWS = 200  # devices that are drawn
TICKS = 8
STEPS = (60, 120, 300, 600, 1800, 3600, 2 * 3600, 6 * 3600, 12 * 3600, 86400)  # seconds between two of them


def gantt(plan: Plan, clock: Callable[[float], str] = units.seconds) -> Drawing:
    """The drawing; `clock` says what time it is so many seconds after the start."""
    busy = list(dict.fromkeys(span.device for span in sorted(plan.spans, key=lambda s: s.device)))[:MOST_ROWS]
    left = MARGIN + max([room_for(name) for name in busy], default=40.0) + 8
    end = max((span.end for span in plan.spans), default=1.0)
    height = AXIS + ROW * max(1, len(busy)) + MARGIN
    colour = {job.job: SERIES[n % len(SERIES)] for n, job in enumerate(plan.jobs)}

    def x(seconds: float) -> float:
        return left + (WIDTH - left - MARGIN) * seconds / end

    marks: list[Rect | Line | Text] = []
    step = next((size for size in STEPS if end / size <= TICKS), end / TICKS)
    for n in range(int(end / step) + 1):
        at = step * n
        marks.append(Line(x(at), AXIS - 4, x(at), height - MARGIN, "faint"))
        marks.append(Text(x(at), AXIS - 10, clock(at), 11, "muted", "middle"))
    for row, name in enumerate(busy):
        top = AXIS + ROW * row + (ROW - BAR) / 2
        marks.append(Text(left - 8, top + BAR - 5, name, 12, "ink", "end"))
        for span in (s for s in plan.spans if s.device == name):
            wide = max(1.0, x(span.end) - x(span.begin) - 1)
            marks.append(Rect(x(span.begin), top, wide, BAR, colour.get(span.job, "rest"), radius=2))
            if room_for(span.job, 11) < wide:
                marks.append(Text(x(span.begin) + 4, top + BAR - 5, span.job, 11, "paper"))
    return Drawing(WIDTH, height, tuple(marks))


def draw(plan: Plan, path: Path, clock: Callable[[float], str] = units.seconds) -> None:
    """Writes the picture as SVG."""
    title = f"{units.counted(len(plan.jobs), 'job')}, {plan.objective}"
    write_whole(path, standalone(gantt(plan, clock), title, "A row for each device, a bar for each job."))
