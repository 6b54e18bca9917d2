"""Bars: the mean error of every method by family, one panel a device; a black line is the noise of measuring."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .style import INK, Record, colour_of, device_panels, in_order, label_of, legend, plain

WIDTH = 0.85


def draw(figure: Any, records: Sequence[Record]) -> None:
    drawn = device_panels(figure, records, columns=2, width=6.4, height=3.4)
    for number, (axes, title, rows) in enumerate(drawn):
        methods = in_order(rows[0]["mape"])
        bar = WIDTH / len(methods)
        for i, method in enumerate(methods):
            places = [x + (i - (len(methods) - 1) / 2) * bar for x in range(len(rows))]
            errors = [100 * r["mape"][method] for r in rows]
            axes.bar(places, errors, 0.92 * bar, color=colour_of(method), label=label_of(method))
        for x, row in enumerate(rows):
            floor = 100 * row["repeatability"]
            axes.plot([x - WIDTH / 2, x + WIDTH / 2], [floor, floor], color=INK, lw=1, label="_noise")
        axes.set_xticks(range(len(rows)), [r["family"] for r in rows])
        axes.set_ylim(0, 60)
        plain(axes, title, "", "mean error [%]" if number % 2 == 0 else "")
        if number == 0:
            legend(axes, loc="upper right", ncols=2)
