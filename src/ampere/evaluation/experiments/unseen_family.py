"""What a profile of one family knows about another that it never saw: its estimates of every family's networks."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalogue import Record
from ..comparing import compared
from ..lab import Lab
from ..profile_job import of_family
from ..trials_job import needs, trials_of

TITLE = "what one profile knows about families it never saw"
FIGURE = ""

jobs = needs(
    lambda plan: [trials_of(plan, device, family) for device in plan.devices for family in plan.families(device)]
)


def records(lab: Lab) -> Iterator[Record]:
    plan = lab.plan
    for device in plan.devices:
        for profiled in plan.families(device):
            for tested in plan.families(device):
                comparison = compared(lab, trials_of(plan, device, tested), (of_family(plan, device, profiled),))
                mape = {method: comparison.mape[method] for method in ("additive", "physics", "flops_intercept")}
                yield {**comparison.of, "profiled": profiled, "tested": tested, "mape": mape}
