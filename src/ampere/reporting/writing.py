"""A report on disk: one page, or its charts one by one for papers."""

from __future__ import annotations

from pathlib import Path

from ampere.reporting import svg
from ampere.storage.files import storing

from .marks import Drawing, Text, room_for
from .page import FULL, HALF, html
from .record import Chart, Report

MARGIN, TITLE, CAPTION, LINE = 18.0, 14.0, 11.5, 16.0


def save_page(report: Report, path: Path) -> list[Path]:
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(html(report), encoding="utf-8")
    return [path]


def save_charts(report: Report, folder: Path, form: str) -> list[Path]:
    """`form` is svg or png; a file is named after its chart."""
    written = []
    for chart in report.charts:
        path, drawing = folder / f"{chart.key}.{form}", on_its_own(chart)
        with storing(path):
            folder.mkdir(parents=True, exist_ok=True)
            if form == "svg":
                path.write_text(svg.alone(drawing, chart.title, chart.caption), encoding="utf-8")
            else:
                from .raster import save_png

                save_png(drawing, path)
        written.append(path)
    return written


def on_its_own(chart: Chart) -> Drawing:
    """With a margin, its title, and the caption that says where its joules come from: a picture travels alone."""
    drawn = chart.draw(FULL if chart.full else HALF)
    titles, captions = wrapped(chart.title, drawn.width, TITLE), wrapped(chart.caption, drawn.width, CAPTION)
    above = MARGIN + (LINE + 3) * len(titles) + 6
    marks = list(drawn.marks)
    marks += [Text(0, 12 - above + MARGIN + i * (LINE + 3), t, TITLE, bold=True) for i, t in enumerate(titles)]
    marks += [Text(0, drawn.height + 20 + i * LINE, t, CAPTION, "muted") for i, t in enumerate(captions)]
    height = above + drawn.height + 12 + LINE * len(captions) + MARGIN
    return Drawing(drawn.width + 2 * MARGIN, height, marks, -MARGIN, -above)


def wrapped(words: str, width: float, size: float) -> list[str]:
    lines = [""]
    for word in words.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if room_for(longer, size) <= width or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
