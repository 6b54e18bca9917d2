"""Error of each method over the noise of measuring, one mark a family; on the line nothing is left to gain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .style import INK, MUTED, Record, colour_of, device_panels, in_order, label_of, legend, plain

SHOWN = 5


def draw(figure: Any, records: Sequence[Record]) -> None:
    for axes, title, rows in device_panels(figure, records, width=6.0, height=4.6):
        floors = [100 * r["repeatability"] for r in rows]
        low, high = 0.8 * min(floors), 1.25 * max(floors)
        axes.plot([low, high], [low, high], color=INK, lw=0.8)
        axes.plot([low, high], [1.5 * low, 1.5 * high], color=MUTED, lw=0.8, ls="--")
        for method in in_order(rows[0]["mape"])[:SHOWN]:
            errors = [100 * r["mape"][method] for r in rows]
            axes.scatter(floors, errors, s=26, color=colour_of(method), label=label_of(method), zorder=3)
        for floor, row in zip(floors, rows, strict=True):
            place = floor, 100 * row["mape"]["additive"]
            axes.annotate(row["family"], place, (4, -9), textcoords="offset points", fontsize=7, color=MUTED)
        axes.set(yscale="log", xlim=(low, high))
        axes.yaxis.set_major_formatter("{x:g}")
        plain(axes, title, "noise floor: measured a second time [%]", "mean error [%] (lines: 1 and 1.5 x the floor)")
        legend(axes, loc="upper left", ncols=2)
