"""The same networks measured again at the end of the evaluation: what a figure is worth later."""

from __future__ import annotations

from collections.abc import Iterator

from ampere.evaluation.catalogue import Record
from ampere.evaluation.comparing import compared
from ampere.evaluation.lab import Lab
from ampere.evaluation.plan import Plan
from ampere.evaluation.trials_job import TrialsJob, needs, trials_of

TITLE = "drift between two measurements of the same networks, minutes apart"
FIGURE = ""


def families(plan: Plan) -> tuple[str, ...]:
    return ("cnn5",) if plan.quick else ("cnn5", "lstm", "transformer")


def both(plan: Plan, device: str, family: str) -> tuple[TrialsJob, TrialsJob]:
    return trials_of(plan, device, family), trials_of(plan, device, family, again=True)


jobs = needs(lambda plan: [t for d in plan.devices for f in families(plan) for t in both(plan, d, f)])


def records(lab: Lab) -> Iterator[Record]:
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
