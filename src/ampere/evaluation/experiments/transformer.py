"""Transformers of random depth and width, estimated and measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean
from typing import Any

from ampere.evaluation.comparing import with_baselines
from ampere.evaluation.drawing import device_panels, diagonal, in_order, look_of, measured_in, unit_for
from ampere.evaluation.jobs import Record, baselines_of, needs, trials_of
from ampere.evaluation.session import Session
from ampere.reporting.plotting import label_axes
from ampere.reporting.words import method_name

TITLE = "estimated against measured energy of Transformers"
FIGURE = "Fig. 9"

FAMILY = "transformer"

jobs = needs(lambda plan: [trials_of(plan, device, FAMILY) for device in plan.large_devices], baselines_of)


def records(session: Session) -> Iterator[Record]:
    for device in session.plan.large_devices:
        comparison = with_baselines(session, device, FAMILY)
        for trial in comparison.trials:
            yield {**comparison.of, **trial.to_json()}


SHOWN = ("additive", "sequential", "flops_intercept", "flops")


def draw(figure: Any, records: Sequence[Record]) -> None:
    """Estimated against measured, one panel per device: Ampere, the paper's method, FLOPs with and without constant."""
    for axes, title, rows in device_panels(figure, records, width=4.2, height=4.2):
        scale, unit = unit_for(r["joules"] for r in rows)
        top = 1.1 * max(measured_in(r, m) / scale for m in SHOWN for r in rows)
        diagonal(axes, top)
        for method in reversed(in_order(m for m in SHOWN if m in rows[0]["estimates"])):
            measured = [measured_in(r, method) / scale for r in rows]
            estimated = [r["estimates"][method] / scale for r in rows]
            error = mean(abs(e / m - 1) for e, m in zip(estimated, measured, strict=True))
            look, label = look_of(method), f"{method_name(method)}: {100 * error:.1f} %"
            axes.scatter(measured, estimated, s=20, color=look.colour, marker=look.marker, lw=0, label=label, zorder=3)
        axes.set(xlim=(0, top), ylim=(0, 1.3 * axes.get_ylim()[1]))  # room for the legend
        label_axes(axes, title, f"trained [{unit}]", f"estimated [{unit}]")
        axes.legend(loc="upper left", reverse=True)
