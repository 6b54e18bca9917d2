"""One panel a step: what is known, what the process makes of it, and where it looks next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .style import FAINT, INK, MUTED, OURS, Record, panels, plain, shared_legend, unit_for


def draw(figure: Any, records: Sequence[Record]) -> None:
    for axes, record in zip(panels(figure, len(records), columns=5, width=2.8, height=2.8), records, strict=True):
        truth = dict(map(tuple, record["truth"]))
        scale, unit = unit_for(truth.values())
        x, mean, doubt = zip(*record["curve"], strict=True)
        low = [(m - 2 * d) / scale for m, d in zip(mean, doubt, strict=True)]
        high = [(m + 2 * d) / scale for m, d in zip(mean, doubt, strict=True)]
        axes.fill_between(x, low, high, color=OURS, alpha=0.15, lw=0, label="two standard deviations")
        axes.plot(x, [m / scale for m in mean], color=OURS, lw=1.4, label="mean")
        axes.plot(list(truth), [j / scale for j in truth.values()], "o", color=FAINT, ms=4, label="not measured yet")
        axes.plot(record["known"], [truth[c] / scale for c in record["known"]], "o", color=INK, ms=5, label="profiled")
        axes.axvline(record["next"], color=MUTED, lw=0.8, ls="--", label="next")
        axes.set_ylim(0, 1.45 * max(truth.values()) / scale)
        plain(axes, f"{record['device_title']}, {record['step']} points", "input channels", f"energy [{unit}]")
    shared_legend(figure)
