"""The same networks measured again at the end of the evaluation: what a figure is worth later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ampere.evaluation.comparing import compared
from ampere.evaluation.drawing import FAINT, INK, OURS, Record, by, panels, plain, unit_for
from ampere.evaluation.jobs import TrialsJob, needs, trials_of
from ampere.evaluation.plan import Plan
from ampere.evaluation.running import Record
from ampere.evaluation.session import Session

TITLE = "drift between two measurements of the same networks, minutes apart"
FIGURE = ""


def families(plan: Plan) -> tuple[str, ...]:
    return ("cnn5",) if plan.quick else ("cnn5", "lstm", "transformer")


def both(plan: Plan, device: str, family: str) -> tuple[TrialsJob, TrialsJob]:
    return trials_of(plan, device, family), trials_of(plan, device, family, again=True)


jobs = needs(lambda plan: [t for d in plan.devices for f in families(plan) for t in both(plan, d, f)])


def records(lab: Session) -> Iterator[Record]:
    for device in lab.plan.devices:
        for family in families(lab.plan):
            first, again = (compared(lab, trials) for trials in both(lab.plan, device, family))
            later = {trial.network: trial for trial in again.trials}
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
                    "mape_later": again.mape["additive"],
                }


# What each network cost later over what it cost first; the band is the noise within one measurement.


def draw(figure: Any, records: Sequence[Record]) -> None:
    groups = {(d, f): own for d, rows in by(records, "device_title").items() for f, own in by(rows, "family").items()}
    for axes, ((device, family), rows) in zip(panels(figure, len(groups)), groups.items(), strict=True):
        scale, unit = unit_for(r["joules"] for r in rows)
        floor = 100 * rows[0]["repeatability"]
        axes.axhspan(-floor, floor, color=FAINT, lw=0)
        axes.axhline(0, color=INK, lw=0.8)
        axes.scatter([r["joules"] / scale for r in rows], [100 * r["drift"] for r in rows], s=16, color=OURS, zorder=3)
        reach = 1.2 * max(3 * floor, *(100 * abs(r["drift"]) for r in rows))
        axes.set_ylim(-reach, reach)
        errors = f"Ampere {100 * rows[0]['mape']:.1f} % off, later {100 * rows[0]['mape_later']:.1f} %"
        plain(axes, f"{family} on {device}\n{errors}", f"measured first [{unit}]", "measured later, difference [%]")
