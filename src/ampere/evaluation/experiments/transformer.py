"""Transformers of random depth and width, estimated and measured."""

from __future__ import annotations

from collections.abc import Iterator

from ampere.evaluation.catalogue import Record
from ampere.evaluation.comparing import beside_rivals
from ampere.evaluation.lab import Lab
from ampere.evaluation.trials_job import needs, trials_of

TITLE = "estimated against measured energy of Transformers"
FIGURE = "Fig. 9"

FAMILY = "transformer"

jobs = needs(lambda plan: [trials_of(plan, device, FAMILY) for device in plan.large_devices], rivals=True)


def records(lab: Lab) -> Iterator[Record]:
    for device in lab.plan.large_devices:
        comparison = beside_rivals(lab, device, FAMILY)
        for trial in comparison.trials:
            yield {**comparison.of, **trial.to_json()}
