"""How near the estimates come to what measuring itself can tell apart: the error beside the repeatability."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalogue import Record
from ..comparing import compared
from ..lab import Lab
from ..profile_job import rivals_of
from ..trials_job import needs, trials_of

TITLE = "mean error against the noise floor"
FIGURE = ""

jobs = needs(
    lambda plan: [trials_of(plan, device, family) for device in plan.devices for family in plan.families(device)],
    rivals=True,
)


def records(lab: Lab) -> Iterator[Record]:
    plan = lab.plan
    for device in plan.devices:
        for family in plan.families(device):
            comparison = compared(lab, trials_of(plan, device, family), rivals_of(plan, device, family))
            repeatability, mape = comparison.repeatability, comparison.mape
            yield {
                **comparison.of,
                "repeatability": repeatability,
                "mape": mape,
                "times_the_floor": {method: error / repeatability for method, error in mape.items()},
            }
