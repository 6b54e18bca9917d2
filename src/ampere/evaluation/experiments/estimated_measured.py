"""Random 5-layer CNNs that were not profiled: every method's estimate beside real training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean
from typing import Any

from ampere.evaluation.comparing import beside_rivals
from ampere.evaluation.drawing import FAINT, INK, Record, by, colour_of, in_order, label_of, panels, plain, unit_for
from ampere.evaluation.jobs import needs, trials_of
from ampere.evaluation.running import Record
from ampere.evaluation.session import Session

TITLE = "estimated against measured energy of random 5-layer CNNs"
FIGURE = "Fig. 7"

FAMILY = "cnn5"

jobs = needs(lambda plan: [trials_of(plan, device, FAMILY) for device in plan.devices], rivals=True)


def records(lab: Session) -> Iterator[Record]:
    for device in lab.plan.devices:
        comparison = beside_rivals(lab, device, FAMILY)
        for trial in comparison.trials:
            yield {**comparison.of, **trial.to_json()}


# Estimated against measured, one panel a method; on the line is right, in the grey within a tenth.

BAND = 1.1
SHOWN = 6


def draw(figure: Any, records: Sequence[Record]) -> None:
    devices = by(records, "device_title")
    shown = [(d, m) for d, rows in devices.items() for m in in_order(rows[0]["estimates"])[:SHOWN]]
    for axes, (device, method) in zip(panels(figure, len(shown), width=3.5, height=3.4), shown, strict=True):
        rows = devices[device]
        scale, unit = unit_for(r["joules"] for r in rows)
        measured = [r["joules"] / scale for r in rows]
        estimated = [r["estimates"][method] / scale for r in rows]
        top = 1.08 * max(*measured, *estimated)
        axes.fill_between([0, top], [0, top / BAND], [0, top * BAND], color=FAINT, lw=0, zorder=0)
        axes.plot([0, top], [0, top], color=INK, lw=0.8, zorder=1)
        axes.scatter(measured, estimated, s=13, color=colour_of(method), zorder=3)
        axes.set(xlim=(0, top), ylim=(0, top), aspect="equal")
        error = mean(abs(e / m - 1) for e, m in zip(estimated, measured, strict=True))
        plain(axes, f"{label_of(method)}: {100 * error:.1f} %", f"trained on {device} [{unit}]", f"estimate [{unit}]")
