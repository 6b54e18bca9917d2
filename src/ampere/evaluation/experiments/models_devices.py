"""Mean error of every method, by family and by device: the paper's main result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ampere.evaluation.comparing import beside_rivals
from ampere.evaluation.drawing import Record, device_panels, dots, floor, shared_legend
from ampere.evaluation.jobs import needs, trials_of
from ampere.evaluation.running import Record
from ampere.evaluation.session import Session

TITLE = "mean error by model and device"
FIGURE = "Fig. 8"

jobs = needs(
    lambda plan: [trials_of(plan, device, family) for device in plan.all_devices for family in plan.families(device)],
    rivals=True,
)


def records(lab: Session) -> Iterator[Record]:
    for device in lab.plan.all_devices:
        for family in lab.plan.families(device):
            comparison = beside_rivals(lab, device, family)
            yield {
                **comparison.of,
                "networks": len(comparison.trials),
                "mape": comparison.mape,
                "repeatability": comparison.repeatability,
                "coverage90": comparison.coverage(),
                "profiling_seconds": comparison.profiling_seconds,
            }


# Mean error of every method by family, one panel a device; the short black lines are the noise of measuring.


def draw(figure: Any, records: Sequence[Record]) -> None:
    for axes, title, rows in device_panels(figure, records, columns=2, width=5.6, height=3.3):
        errors = {r["family"]: {m: 100 * e for m, e in r["mape"].items()} for r in rows}
        dots(axes, errors, "mean error [%]", title)
        for x, row in enumerate(rows):
            floor(axes, x, 100 * row["repeatability"])
    shared_legend(figure)
