"""As in the paper: test loss and accuracy over iterations, and beside them the energy spent against the budget."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any

from ampere.evaluation.case_study.subject import FLOPS, ORIGINAL, OURS, SHARE
from ampere.evaluation.case_study.verdict import verdict_of

from .style import FAINT, INK, MUTED, THEIRS, Record, by, legend, panels, plain, unit_for
from .style import OURS as OUR_COLOUR

WAYS = {
    ORIGINAL: ("original", MUTED),
    FLOPS: ("pruned by FLOPs", THEIRS),
    OURS: ("pruned by Ampere", OUR_COLOUR),
}


def draw(figure: Any, records: Sequence[Record]) -> None:
    devices = by(records, "device_title")
    axes = iter(panels(figure, 3 * len(devices), columns=3, width=4.2, height=3.7))
    for device, rows in devices.items():
        known = [row for row in rows if row.get("share") is not None]
        seeds = len({row["seed"] for row in known})
        among = f"{device}, {seeds} seeds" if seeds > 1 else device
        _over_iterations(next(axes), known, 1, 1.0, among, "test loss")
        _over_iterations(next(axes), known, 2, 100.0, "", "test accuracy [%]")
        _energy(next(axes), known)


def _over_iterations(axes: Any, rows: Sequence[Record], column: int, scale: float, title: str, words: str) -> None:
    """The mean of the seeds, within the least and the most."""
    for model, (label, colour) in WAYS.items():
        curves = [row["curve"] for row in rows if row["model"] == model]
        if not curves:
            continue
        places = [point[0] for point in curves[0]]
        each = [[scale * curve[i][column] for curve in curves] for i in range(len(places))]
        axes.fill_between(places, [min(e) for e in each], [max(e) for e in each], color=colour, alpha=0.12, lw=0)
        axes.plot(places, [mean(e) for e in each], color=colour, lw=1.6, label=label)
    plain(axes, title, "iterations", words)
    legend(axes, loc="upper right" if column == 1 else "lower right")


def _energy(axes: Any, rows: Sequence[Record]) -> None:
    verdict = verdict_of("", rows)
    scale, unit = unit_for([row["run_joules"] for row in rows])
    budget = mean(row["budget_joules"] for row in rows) / scale
    last = rows[0]["run_iterations"]
    for model, (_, colour) in WAYS.items():
        own = [row for row in rows if row["model"] == model]
        if own:
            spent = mean(row["run_joules"] for row in own) / scale
            axes.plot([0, last], [0, spent], color=colour, lw=1.6)
            share = f"{100 * mean(verdict.ways[model].shares):.1f} %"
            axes.annotate(
                share, (last, spent), (4, 0), textcoords="offset points", color=colour, fontsize=9, va="center"
            )
    axes.hlines(budget, 0, last, color=INK, lw=0.9, ls=(0, (4, 3)))
    axes.annotate(
        f"budget, {100 * SHARE:.0f} %", (0, budget), (2, 3), textcoords="offset points", color=INK, fontsize=9
    )
    axes.fill_between([0, last], budget, budget * 2.1, color=FAINT, alpha=0.5, lw=0, zorder=0)
    axes.set(xlim=(0, 1.16 * last), ylim=(0, 2.1 * budget))
    plain(axes, "", "iterations", f"energy spent [{unit}]")
