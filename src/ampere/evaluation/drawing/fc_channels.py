"""Joules of one fully connected layer over its channels, and what its FLOPs would make of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .style import OURS, Record, colour_of, device_panels, legend, plain, unit_for


def draw(figure: Any, records: Sequence[Record]) -> None:
    for axes, title, rows in device_panels(figure, records, width=5.4, height=4.0):
        scale, unit = unit_for(r["joules"] for r in rows)
        x = [r["channels"] for r in rows]
        axes.plot(x, [r["joules"] / scale for r in rows], "o-", color=OURS, ms=4, lw=1, label="trained")
        line = [r["flops_joules"] / scale for r in rows]
        axes.plot(x, line, "--", color=colour_of("flops_intercept"), label="proportional to FLOPs")
        axes.set_ylim(bottom=0)
        plain(axes, title, "input channels, of 50 x 50 values each", f"energy an iteration [{unit}]")
        legend(axes, loc="upper left")
