"""Signed errors over the number of layers: a bias of each layer would pile up with depth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ampere.evaluation.comparing import compared
from ampere.evaluation.drawing import INK, Record, by, colour_of, label_of, legend, panels, plain
from ampere.evaluation.jobs import needs, trials_of
from ampere.evaluation.running import Record
from ampere.evaluation.session import Session

TITLE = "error against depth, in families whose networks differ in depth"
FIGURE = ""

DEEP = ("lstm", "transformer", "resnet")

jobs = needs(lambda plan: [trials_of(plan, device, family) for device in plan.devices for family in DEEP])


def records(lab: Session) -> Iterator[Record]:
    for device in lab.plan.devices:
        for family in DEEP:
            comparison = compared(lab, trials_of(lab.plan, device, family))
            for trial in comparison.trials:
                errors = {method: joules / trial.joules - 1 for method, joules in trial.estimates.items()}
                yield {**comparison.of, "network": trial.network, "layers": trial.layers, "errors": errors}


# Signed errors over the number of layers, one panel a family: a slope would be a bias that each layer adds to.

SHOWN = ("flops_intercept", "additive")


def draw(figure: Any, records: Sequence[Record]) -> None:
    groups = {(d, f): own for d, rows in by(records, "device_title").items() for f, own in by(rows, "family").items()}
    for axes, ((device, family), rows) in zip(panels(figure, len(groups)), groups.items(), strict=True):
        axes.axhline(0, color=INK, lw=0.8)
        for method in SHOWN:
            errors = [100 * r["errors"][method] for r in rows]
            axes.scatter([r["layers"] for r in rows], errors, s=15, color=colour_of(method), label=label_of(method))
        axes.locator_params(axis="x", integer=True)
        plain(axes, f"{family} on {device}", "layers", "error [%]")
    legend(axes, loc="best", reverse=True)
