"""Random 5-layer CNNs that were not profiled: every method's estimate compared with real training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean
from typing import Any

from ampere.evaluation.comparing import with_baselines
from ampere.evaluation.drawing import by, diagonal, look_of, measured_in, panels, unit_for
from ampere.evaluation.jobs import Record, baselines_of, needs, trials_of
from ampere.evaluation.session import Session
from ampere.reporting.plotting import label_axes
from ampere.reporting.words import method_name

TITLE = "estimated against measured energy of random 5-layer CNNs"
FIGURE = "Fig. 7"

FAMILY = "cnn5"

jobs = needs(lambda plan: [trials_of(plan, device, FAMILY) for device in plan.devices], baselines_of)


def records(session: Session) -> Iterator[Record]:
    for device in session.plan.devices:
        comparison = with_baselines(session, device, FAMILY)
        for trial in comparison.trials:
            yield {**comparison.of, **trial.to_json()}


SHOWN = ("additive", "sequential", "flops", "flops_intercept")


def draw(figure: Any, records: Sequence[Record]) -> None:
    """Estimated against measured, one row per device and one panel per method; grey: within a tenth."""
    devices = by(records, "device_title")
    shown = [(d, m) for d, rows in devices.items() for m in SHOWN if m in rows[0]["estimates"]]
    columns = len(shown) // len(devices)
    for axes, (device, method) in zip(panels(figure, len(shown), columns, 3.0, 3.3), shown, strict=True):
        rows = devices[device]
        scale, unit = unit_for(r["joules"] for r in rows)
        measured = [measured_in(r, method) / scale for r in rows]
        top = 1.08 * max([*measured, *(r["estimates"][m] / scale for m in SHOWN for r in rows if m in r["estimates"])])
        diagonal(axes, top)
        estimated = [r["estimates"][method] / scale for r in rows]
        look = look_of(method)
        axes.scatter(measured, estimated, s=18, color=look.colour, marker=look.marker, lw=0, zorder=3)
        axes.set(xlim=(0, top), ylim=(0, top), aspect="equal")
        error = mean(abs(e / m - 1) for e, m in zip(estimated, measured, strict=True))
        words = f"{method_name(method)}: {100 * error:.1f} %"
        label_axes(axes, words, f"trained on {device} [{unit}]", f"estimated [{unit}]")
