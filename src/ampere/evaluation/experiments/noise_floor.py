"""The error of every method as a multiple of the repeatability, below which measuring cannot tell methods apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ampere.evaluation.comparing import with_baselines
from ampere.evaluation.drawing import device_panels, dots, shared_legend
from ampere.evaluation.jobs import Record, baselines_of, needs, trials_of
from ampere.evaluation.session import Session
from ampere.reporting.plotting import INK, MUTED

TITLE = "mean error against the noise floor"
FIGURE = ""

jobs = needs(
    lambda plan: [trials_of(plan, device, family) for device in plan.devices for family in plan.families(device)],
    baselines_of,
)


def records(session: Session) -> Iterator[Record]:
    for device in session.plan.devices:
        for family in session.plan.families(device):
            comparison = with_baselines(session, device, family)
            repeatability, mape = comparison.repeatability, comparison.mape
            yield {
                **comparison.of,
                "repeatability": repeatability,
                "mape": mape,
                "times_the_floor": {method: error / repeatability for method, error in mape.items()},
            }


GOAL = 1.5


def draw(figure: Any, records: Sequence[Record]) -> None:
    """Each method's error as a multiple of the noise of measuring; at 1 nothing is left to gain."""
    for axes, title, rows in device_panels(figure, records, columns=2, width=6.4, height=4.0):
        times = {f"{r['family']}\nnoise {100 * r['repeatability']:.1f} %": r["times_the_floor"] for r in rows}
        dots(axes, times, "mean error / noise floor", title)
        axes.axhline(1, color=INK, lw=1)
        axes.axhline(GOAL, color=MUTED, lw=0.8, ls="--")
        axes.tick_params(axis="x", labelsize=8)
    shared_legend(figure)
