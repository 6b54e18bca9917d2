"""Random 5-layer CNNs that were not profiled: every method's estimate compared with real training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean
from typing import Any

from ampere.evaluation.comparing import with_baselines
from ampere.evaluation.drawing import by, colour_of, diagonal, in_order, panels, unit_for
from ampere.evaluation.jobs import Record, needs, trials_of
from ampere.evaluation.session import Session
from ampere.reporting.plotting import label_axes
from ampere.reporting.words import method_name

TITLE = "estimated against measured energy of random 5-layer CNNs"
FIGURE = "Fig. 7"

FAMILY = "cnn5"

jobs = needs(lambda plan: [trials_of(plan, device, FAMILY) for device in plan.devices], baselines=True)


def records(session: Session) -> Iterator[Record]:
    for device in session.plan.devices:
        comparison = with_baselines(session, device, FAMILY)
        for trial in comparison.trials:
            yield {**comparison.of, **trial.to_json()}


SHOWN = 6


def draw(figure: Any, records: Sequence[Record]) -> None:
    """Estimated against measured, one panel per method; grey: within a tenth."""
    devices = by(records, "device_title")
    shown = [(d, m) for d, rows in devices.items() for m in in_order(rows[0]["estimates"])[:SHOWN]]
    for axes, (device, method) in zip(panels(figure, len(shown), width=3.5, height=3.4), shown, strict=True):
        rows = devices[device]
        scale, unit = unit_for(r["joules"] for r in rows)
        measured = [r["joules"] / scale for r in rows]
        estimated = [r["estimates"][method] / scale for r in rows]
        top = 1.08 * max(*measured, *estimated)
        diagonal(axes, top)
        axes.scatter(measured, estimated, s=13, color=colour_of(method), zorder=3)
        axes.set(xlim=(0, top), ylim=(0, top), aspect="equal")
        error = mean(abs(e / m - 1) for e, m in zip(estimated, measured, strict=True))
        label_axes(
            axes, f"{method_name(method)}: {100 * error:.1f} %", f"trained on {device} [{unit}]", f"estimate [{unit}]"
        )
