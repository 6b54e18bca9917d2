"""A report on disk: one page, or its charts one by one for papers."""

from __future__ import annotations

from pathlib import Path

from ampere.profiles.storage import storing

from . import svg
from .page import FULL, HALF, html
from .record import Report


def save_page(report: Report, path: Path) -> list[Path]:
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(html(report), encoding="utf-8")
    return [path]


def save_charts(report: Report, folder: Path, form: str) -> list[Path]:
    """`form` is svg or png; a file is named after its chart."""
    written = []
    for chart in report.charts:
        path = folder / f"{chart.key}.{form}"
        drawing = chart.draw(FULL if chart.full else HALF)
        with storing(path):
            folder.mkdir(parents=True, exist_ok=True)
            if form == "svg":
                path.write_text(svg.alone(drawing, chart.title, chart.caption), encoding="utf-8")
            else:
                from .raster import save_png

                save_png(drawing, path)
        written.append(path)
    return written
