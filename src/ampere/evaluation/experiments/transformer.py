"""Transformers of random depth and width, estimated and measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean
from typing import Any

from ampere.evaluation.comparing import beside_rivals
from ampere.evaluation.drawing import (
    FAINT,
    INK,
    Record,
    colour_of,
    device_panels,
    in_order,
    label_of,
    legend,
    plain,
    unit_for,
)
from ampere.evaluation.jobs import needs, trials_of
from ampere.evaluation.running import Record
from ampere.evaluation.session import Session

TITLE = "estimated against measured energy of Transformers"
FIGURE = "Fig. 9"

FAMILY = "transformer"

jobs = needs(lambda plan: [trials_of(plan, device, FAMILY) for device in plan.large_devices], rivals=True)


def records(lab: Session) -> Iterator[Record]:
    for device in lab.plan.large_devices:
        comparison = beside_rivals(lab, device, FAMILY)
        for trial in comparison.trials:
            yield {**comparison.of, **trial.to_json()}


# Estimated against measured, one panel a device; ours and the honest FLOPs line.

SHOWN = ("additive", "sequential", "flops_intercept")
BAND = 1.1


def draw(figure: Any, records: Sequence[Record]) -> None:
    for axes, title, rows in device_panels(figure, records, width=4.4, height=4.2):
        scale, unit = unit_for(r["joules"] for r in rows)
        measured = [r["joules"] / scale for r in rows]
        top = 1.1 * max(measured)
        axes.fill_between([0, top], [0, top / BAND], [0, top * BAND], color=FAINT, lw=0, zorder=0)
        axes.plot([0, top], [0, top], color=INK, lw=0.8, zorder=1)
        for method in reversed(in_order(m for m in SHOWN if m in rows[0]["estimates"])):
            estimated = [r["estimates"][method] / scale for r in rows]
            error = mean(abs(e / m - 1) for e, m in zip(estimated, measured, strict=True))
            label = f"{label_of(method)}: {100 * error:.1f} %"
            axes.scatter(measured, estimated, s=16, color=colour_of(method), label=label, zorder=3)
        axes.set(xlim=(0, top), ylim=(0, None))
        plain(axes, title, f"trained [{unit}]", f"estimate [{unit}]")
        legend(axes, loc="upper left", reverse=True)
