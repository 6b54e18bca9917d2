"""The same networks measured a second time at the end of the evaluation: how long a figure stays true."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ampere.evaluation.comparing import compared
from ampere.evaluation.drawing import family_panels, unit_for
from ampere.evaluation.jobs import Record, TrialsJob, needs, trials_of
from ampere.evaluation.plan import Plan
from ampere.evaluation.session import Session
from ampere.reporting.plotting import BLUE, FAINT, INK, label_axes

TITLE = "drift between two measurements of the same networks, minutes apart"
FIGURE = ""


def families(plan: Plan) -> tuple[str, ...]:
    return ("cnn5",) if plan.quick else ("cnn5", "lstm")


def both(plan: Plan, device: str, family: str) -> tuple[TrialsJob, TrialsJob]:
    return trials_of(plan, device, family), trials_of(plan, device, family, repeat=True)


jobs = needs(lambda plan: [t for d in plan.devices for f in families(plan) for t in both(plan, d, f)])


def records(session: Session) -> Iterator[Record]:
    for device in session.plan.devices:
        for family in families(session.plan):
            first, repeat = (compared(session, trials) for trials in both(session.plan, device, family))
            later = {trial.network: trial for trial in repeat.trials}
            for before in (trial for trial in first.trials if trial.network in later):
                after = later[before.network]
                yield {
                    **first.of,
                    "network": before.network,
                    "joules": before.joules,
                    "joules_later": after.joules,
                    "drift": after.joules / before.joules - 1,
                    "repeatability": first.repeatability,
                    "mape": first.mape["additive"],
                    "mape_later": repeat.mape["additive"],
                }


def draw(figure: Any, records: Sequence[Record]) -> None:
    """What each network cost later over what it cost first; the band is the noise within one measurement."""
    for axes, title, rows in family_panels(figure, records):
        scale, unit = unit_for(r["joules"] for r in rows)
        floor = 100 * rows[0]["repeatability"]
        axes.axhspan(-floor, floor, color=FAINT, lw=0)
        axes.axhline(0, color=INK, lw=0.8)
        axes.scatter([r["joules"] / scale for r in rows], [100 * r["drift"] for r in rows], s=16, color=BLUE, zorder=3)
        reach = 1.2 * max(3 * floor, *(100 * abs(r["drift"]) for r in rows))
        axes.set_ylim(-reach, reach)
        errors = f"Ampere {100 * rows[0]['mape']:.1f} % off, later {100 * rows[0]['mape_later']:.1f} %"
        label_axes(axes, f"{title}\n{errors}", f"measured first [{unit}]", "measured later, difference [%]")
