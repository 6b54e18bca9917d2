"""What each network costs now over what it cost in another run, measured and estimated; the band is the noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ampere.core.units import signed_percent
from ampere.evaluation.summary import drift_of

from .style import FAINT, INK, MUTED, OURS, THEIRS, Record, panels, plain, shared_legend, unit_for

SERIES = (("joules", "measured", OURS, "o"), ("estimate", "estimated", THEIRS, "x"))


def draw(figure: Any, records: Sequence[Record]) -> None:
    groups = drift_of(records)
    for axes, group in zip(panels(figure, len(groups)), groups, strict=True):
        rows = [r for r in records if (r["device"], r["family"]) == (group["device"], group["family"])]
        scale, unit = unit_for(r["joules_before"] for r in rows)
        noise, shift = 100 * group["repeatability"], 100 * group["yardstick"]
        axes.axhspan(-noise, noise, color=FAINT, lw=0, label="measured twice in one run")
        axes.axhline(0, color=INK, lw=0.8)
        axes.axhline(shift, color=MUTED, lw=1, ls=":", label="the yardstick itself")
        at, seen = [r["joules_before"] / scale for r in rows], [-2 * noise, 2 * noise, shift]
        for what, word, colour, marker in SERIES:
            found = [100 * (r[what] / r[f"{what}_before"] - 1) for r in rows]
            axes.scatter(at, found, s=18, color=colour, marker=marker, lw=1.2, zorder=3, label=word)
            seen += found
        room = 0.08 * (max(seen) - min(seen))
        axes.set_ylim(min(seen) - room, max(seen) + room)
        both = f"measured {signed_percent(group['measured'])}, estimated {signed_percent(group['estimated'])}"
        title = f"{group['family']} on {group['device_title']}\n{both}"
        plain(axes, title, f"measured before [{unit}]", "now, difference [%]")
    shared_legend(figure)
