"""What each network cost later over what it cost first; the band is the noise within one measurement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .style import FAINT, INK, OURS, Record, by, panels, plain, unit_for


def draw(figure: Any, records: Sequence[Record]) -> None:
    groups = {(d, f): own for d, rows in by(records, "device_title").items() for f, own in by(rows, "family").items()}
    for axes, ((device, family), rows) in zip(panels(figure, len(groups)), groups.items(), strict=True):
        scale, unit = unit_for(r["joules"] for r in rows)
        floor = 100 * rows[0]["repeatability"]
        axes.axhspan(-floor, floor, color=FAINT, lw=0)
        axes.axhline(0, color=INK, lw=0.8)
        axes.scatter([r["joules"] / scale for r in rows], [100 * r["drift"] for r in rows], s=16, color=OURS, zorder=3)
        reach = 1.2 * max(3 * floor, *(100 * abs(r["drift"]) for r in rows))
        axes.set_ylim(-reach, reach)
        errors = f"Ampere {100 * rows[0]['mape']:.1f} % off, later {100 * rows[0]['mape_later']:.1f} %"
        plain(axes, f"{family} on {device}\n{errors}", f"measured first [{unit}]", "measured later, difference [%]")
