"""Signed errors over the number of layers: a bias of each layer would pile up with depth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ampere.evaluation.comparing import compared
from ampere.evaluation.drawing import colour_of, family_panels
from ampere.evaluation.jobs import Record, needs, trials_of
from ampere.evaluation.session import Session
from ampere.reporting.plotting import INK, label_axes
from ampere.reporting.words import method_name

TITLE = "error against depth, in families whose networks differ in depth"
FIGURE = ""

DEEP = ("lstm", "transformer", "resnet")

jobs = needs(lambda plan: [trials_of(plan, device, family) for device in plan.devices for family in DEEP])


def records(session: Session) -> Iterator[Record]:
    for device in session.plan.devices:
        for family in DEEP:
            comparison = compared(session, trials_of(session.plan, device, family))
            for trial in comparison.trials:
                errors = {method: joules / trial.joules - 1 for method, joules in trial.estimates.items()}
                yield {**comparison.of, "network": trial.network, "layers": trial.layers, "errors": errors}


SHOWN = ("flops_intercept", "additive")


def draw(figure: Any, records: Sequence[Record]) -> None:
    """Signed errors over the number of layers, one panel per family: a slope would be a bias of each layer."""
    for axes, title, rows in family_panels(figure, records):
        axes.axhline(0, color=INK, lw=0.8)
        for method in SHOWN:
            errors = [100 * r["errors"][method] for r in rows]
            axes.scatter([r["layers"] for r in rows], errors, s=15, color=colour_of(method), label=method_name(method))
        axes.locator_params(axis="x", integer=True)
        label_axes(axes, title, "layers", "error [%]")
    axes.legend(loc="best", reverse=True)
