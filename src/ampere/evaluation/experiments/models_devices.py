"""Mean error of every method, by family and by device: the paper's main result."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalogue import Record
from ..comparing import compared
from ..lab import Lab
from ..trials_job import needs, of_family_trials

TITLE = "mean error by model and device"
FIGURE = "Fig. 8"

jobs = needs(
    lambda plan: [of_family_trials(plan, device, family) for device in plan.all_devices for family in plan.families]
)


def records(lab: Lab) -> Iterator[Record]:
    plan = lab.plan
    for device in plan.all_devices:
        for family in plan.families:
            comparison = compared(lab, of_family_trials(plan, device, family))
            yield {
                **comparison.of,
                "networks": len(comparison.trials),
                "mape": comparison.validation.mape,
                "repeatability": comparison.validation.repeatability_mape,
                "coverage90": comparison.coverage(),
                "profiling_seconds": comparison.validation.profiling_seconds,
            }
