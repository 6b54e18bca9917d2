"""Mean error of every method, by family and by device: the paper's main result."""

from __future__ import annotations

from collections.abc import Iterator

from ampere.evaluation.catalogue import Record
from ampere.evaluation.comparing import beside_rivals
from ampere.evaluation.lab import Lab
from ampere.evaluation.trials_job import needs, trials_of

TITLE = "mean error by model and device"
FIGURE = "Fig. 8"

jobs = needs(
    lambda plan: [trials_of(plan, device, family) for device in plan.all_devices for family in plan.families(device)],
    rivals=True,
)


def records(lab: Lab) -> Iterator[Record]:
    for device in lab.plan.all_devices:
        for family in lab.plan.families(device):
            comparison = beside_rivals(lab, device, family)
            yield {
                **comparison.of,
                "networks": len(comparison.trials),
                "mape": comparison.mape,
                "repeatability": comparison.repeatability,
                "coverage90": comparison.coverage(),
                "profiling_seconds": comparison.profiling_seconds,
            }
