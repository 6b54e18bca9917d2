"""Signed errors over the number of layers: a bias of each layer would pile up with depth."""

from __future__ import annotations

from collections.abc import Iterator

from ampere.evaluation.catalogue import Record
from ampere.evaluation.comparing import compared
from ampere.evaluation.lab import Lab
from ampere.evaluation.trials_job import needs, trials_of

TITLE = "error against depth, in families whose networks differ in depth"
FIGURE = ""

DEEP = ("lstm", "transformer", "resnet")

jobs = needs(lambda plan: [trials_of(plan, device, family) for device in plan.devices for family in DEEP])


def records(lab: Lab) -> Iterator[Record]:
    for device in lab.plan.devices:
        for family in DEEP:
            comparison = compared(lab, trials_of(lab.plan, device, family))
            for trial in comparison.trials:
                errors = {method: joules / trial.joules - 1 for method, joules in trial.estimates.items()}
                yield {**comparison.of, "network": trial.network, "layers": trial.layers, "errors": errors}
