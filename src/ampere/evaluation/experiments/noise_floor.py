"""How near the estimates come to what measuring itself can tell apart: the error beside the repeatability."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ampere.evaluation.comparing import beside_rivals
from ampere.evaluation.drawing import INK, MUTED, Record, device_panels, dots, shared_legend
from ampere.evaluation.jobs import needs, trials_of
from ampere.evaluation.running import Record
from ampere.evaluation.session import Session

TITLE = "mean error against the noise floor"
FIGURE = ""

jobs = needs(
    lambda plan: [trials_of(plan, device, family) for device in plan.devices for family in plan.families(device)],
    rivals=True,
)


def records(lab: Session) -> Iterator[Record]:
    for device in lab.plan.devices:
        for family in lab.plan.families(device):
            comparison = beside_rivals(lab, device, family)
            repeatability, mape = comparison.repeatability, comparison.mape
            yield {
                **comparison.of,
                "repeatability": repeatability,
                "mape": mape,
                "times_the_floor": {method: error / repeatability for method, error in mape.items()},
            }


# How many times the noise of measuring each method's error is; at 1 nothing is left to gain.

GOAL = 1.5


def draw(figure: Any, records: Sequence[Record]) -> None:
    for axes, title, rows in device_panels(figure, records, columns=2, width=6.4, height=4.0):
        times = {f"{r['family']}\nnoise {100 * r['repeatability']:.1f} %": r["times_the_floor"] for r in rows}
        dots(axes, times, "mean error / noise floor", title)
        axes.axhline(1, color=INK, lw=1)
        axes.axhline(GOAL, color=MUTED, lw=0.8, ls="--")
        axes.tick_params(axis="x", labelsize=8)
    shared_legend(figure)
