"""What each network costs now over what it cost in another run, measured and estimated; the band is the noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ampere.units import signed_percent

from ..summary import drift_of
from .style import FAINT, INK, OURS, THEIRS, Record, panels, plain, shared_legend, unit_for


def draw(figure: Any, records: Sequence[Record]) -> None:
    groups = drift_of(records)
    for axes, group in zip(panels(figure, len(groups)), groups, strict=True):
        rows = [r for r in records if (r["device"], r["family"]) == (group["device"], group["family"])]
        scale, unit = unit_for(r["joules_before"] for r in rows)
        noise = 100 * group["repeatability"]
        axes.axhspan(-noise, noise, color=FAINT, lw=0, label="measured twice in one run")
        axes.axhline(0, color=INK, lw=0.8)
        reach = 3 * noise
        for what, colour, marker in (("joules", OURS, "o"), ("estimate", THEIRS, "x")):
            found = [100 * (r[what] / r[f"{what}_before"] - 1) for r in rows]
            word = "measured" if what == "joules" else "estimated"
            at = [r["joules_before"] / scale for r in rows]
            axes.scatter(at, found, s=18, color=colour, marker=marker, lw=1.2, zorder=3, label=word)
            reach = max(reach, *map(abs, found))
        axes.set_ylim(-1.15 * reach, 1.15 * reach)
        both = f"measured {signed_percent(group['measured'])}, estimated {signed_percent(group['estimated'])}"
        title = f"{group['family']} on {group['device_title']}\n{both}"
        plain(axes, title, f"measured before [{unit}]", "now, difference [%]")
    shared_legend(figure)
