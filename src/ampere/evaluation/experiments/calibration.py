"""Are the intervals honest? Of the intervals that claim to hold p % of the measurements, how many really do."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import NormalDist

from ampere.evaluation.catalogue import Record
from ampere.evaluation.comparing import compared
from ampere.evaluation.lab import Lab
from ampere.evaluation.trials_job import needs, trials_of

TITLE = "calibration of the estimates' intervals"
FIGURE = ""

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)

jobs = needs(
    lambda plan: [trials_of(plan, device, family) for device in plan.devices for family in plan.families(device)]
)


def records(lab: Lab) -> Iterator[Record]:
    plan = lab.plan
    for device in plan.devices:
        for family in plan.families(device):
            comparison = compared(lab, trials_of(plan, device, family))
            for level in LEVELS:
                z = NormalDist().inv_cdf(0.5 + level / 2)
                networks = len(comparison.trials)
                yield {**comparison.of, "level": level, "coverage": comparison.coverage(z), "networks": networks}
