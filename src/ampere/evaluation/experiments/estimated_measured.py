"""Random 5-layer CNNs that were not profiled: every method's estimate beside real training."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalogue import Record
from ..comparing import compared
from ..lab import Lab
from ..trials_job import needs, of_family_trials

TITLE = "estimated against measured energy of random 5-layer CNNs"
FIGURE = "Fig. 7"

FAMILY = "cnn5"

jobs = needs(lambda plan: [of_family_trials(plan, device, FAMILY) for device in plan.devices])


def records(lab: Lab) -> Iterator[Record]:
    for device in lab.plan.devices:
        comparison = compared(lab, of_family_trials(lab.plan, device, FAMILY))
        for trial in comparison.trials:
            yield {
                **comparison.of,
                "network": trial.network,
                "flops": trial.flops,
                "joules": trial.joules,
                "joules_again": trial.joules_again,
                "estimates": trial.estimates,
            }
