"""How many times the noise of measuring each method's error is; at 1 nothing is left to gain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .dots import dots
from .style import INK, MUTED, Record, device_panels, shared_legend

GOAL = 1.5


def draw(figure: Any, records: Sequence[Record]) -> None:
    for axes, title, rows in device_panels(figure, records, columns=2, width=6.4, height=4.0):
        times = {f"{r['family']}\nnoise {100 * r['repeatability']:.1f} %": r["times_the_floor"] for r in rows}
        dots(axes, times, "mean error / noise floor", title)
        axes.axhline(1, color=INK, lw=1)
        axes.axhline(GOAL, color=MUTED, lw=0.8, ls="--")
        axes.tick_params(axis="x", labelsize=8)
    shared_legend(figure)
