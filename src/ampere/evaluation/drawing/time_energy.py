"""One mark a network: how long an iteration took, and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .style import MUTED, OURS, Record, device_panels, plain, unit_for


def draw(figure: Any, records: Sequence[Record]) -> None:
    for axes, title, rows in device_panels(figure, records, width=3.6, height=3.2):
        scale, unit = unit_for(r["joules"] for r in rows)
        axes.scatter([1e3 * r["seconds"] for r in rows], [r["joules"] / scale for r in rows], s=14, color=OURS)
        axes.set(xlim=(0, None), ylim=(0, None))
        built_in = "" if rows[0]["meter_measures"] else "\n(joules are modelled from time)"
        words = f"correlation {rows[0]['correlation']:.3f}{built_in}"
        axes.text(0.97, 0.05, words, transform=axes.transAxes, ha="right", color=MUTED, fontsize=8)
        plain(axes, title, "time of an iteration [ms]", f"energy [{unit}]")
