"""Mean error of every method, by family and by device: the paper's main result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ampere.evaluation.comparing import with_baselines
from ampere.evaluation.drawing import device_panels, dots, shared_legend
from ampere.evaluation.jobs import Record, needs, trials_of
from ampere.evaluation.session import Session
from ampere.reporting.plotting import INK

TITLE = "mean error by model and device"
FIGURE = "Fig. 8"

jobs = needs(
    lambda plan: [trials_of(plan, device, family) for device in plan.all_devices for family in plan.families(device)],
    baselines=True,
)


def records(session: Session) -> Iterator[Record]:
    for device in session.plan.all_devices:
        for family in session.plan.families(device):
            comparison = with_baselines(session, device, family)
            yield {
                **comparison.of,
                "networks": len(comparison.trials),
                "mape": comparison.mape,
                "repeatability": comparison.repeatability,
                "coverage90": comparison.coverage(),
                "profiling_seconds": comparison.profiling_seconds,
            }


def draw(figure: Any, records: Sequence[Record]) -> None:
    """Mean error of every method by family, one panel per device; short black lines: the noise of measuring."""
    for axes, title, rows in device_panels(figure, records, columns=2, width=5.6, height=3.3):
        errors = {r["family"]: {m: 100 * e for m, e in r["mape"].items()} for r in rows}
        dots(axes, errors, "mean error [%]", title)
        for x, row in enumerate(rows):
            axes.plot([x - 0.42, x + 0.42], [100 * row["repeatability"]] * 2, color=INK, lw=1.2, zorder=2)
    shared_legend(figure)
