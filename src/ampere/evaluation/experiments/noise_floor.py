"""How near the estimates come to what measuring itself can tell apart: the error beside the repeatability."""

from __future__ import annotations

from collections.abc import Iterator

from ampere.evaluation.catalogue import Record
from ampere.evaluation.comparing import beside_rivals
from ampere.evaluation.lab import Lab
from ampere.evaluation.trials_job import needs, trials_of

TITLE = "mean error against the noise floor"
FIGURE = ""

jobs = needs(
    lambda plan: [trials_of(plan, device, family) for device in plan.devices for family in plan.families(device)],
    rivals=True,
)


def records(lab: Lab) -> Iterator[Record]:
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
