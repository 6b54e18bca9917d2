"""A fully connected layer over its input channels: FLOPs grow in a straight line, energy need not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ampere.evaluation.drawing import colour_of, device_panels, unit_for
from ampere.evaluation.jobs import BlocksJob, Record
from ampere.evaluation.layers import flops_of, linear, measured
from ampere.evaluation.plan import Plan
from ampere.evaluation.session import Session
from ampere.profiling.experiment import Experiment, of_layers
from ampere.reporting.plotting import BLUE, label_axes

TITLE = "energy of a fully connected layer over its channels, and its FLOPs"
FIGURE = "Fig. 5"

BATCH, PLACES, CLASSES = 4, 50 * 50, 10  # the paper's input: (4, channels, 50, 50)


def channels(plan: Plan) -> list[int]:
    return [1, *range(4, 65, plan.either(6, 2))]


def fc_job(plan: Plan, device: str) -> BlocksJob:
    def build() -> list[Experiment]:
        return [of_layers([linear(c * PLACES, CLASSES, BATCH)], BATCH) for c in channels(plan)]

    return BlocksJob(device, "fc-channels", build, len(channels(plan)), plan.either(3, 8), 0.12)


def jobs(plan: Plan) -> list[BlocksJob]:
    return [fc_job(plan, device) for device in plan.devices]


def records(session: Session) -> Iterator[Record]:
    for device in session.plan.devices:
        found = zip(channels(session.plan), session.get(fc_job(session.plan, device)), strict=True)
        seen = [(c, flops_of([linear(c * PLACES, CLASSES, BATCH)]), o) for c, o in found if o]
        relative = np.array([f / o.joules for _, f, o in seen])
        joules_a_flop = float(relative.sum() / (relative**2).sum())  # the best line through the origin
        for c, flops, observation in seen:
            yield {
                **measured(device, observation),
                "channels": c,
                "flops": flops,
                "flops_joules": joules_a_flop * flops,
            }


def draw(figure: Any, records: Sequence[Record]) -> None:
    """Joules of one fully connected layer over its channels, and what its FLOPs would make of it."""
    for axes, title, rows in device_panels(figure, records, width=5.4, height=4.0):
        scale, unit = unit_for(r["joules"] for r in rows)
        x = [r["channels"] for r in rows]
        axes.plot(x, [r["joules"] / scale for r in rows], "o-", color=BLUE, ms=4, lw=1, label="trained")
        line = [r["flops_joules"] / scale for r in rows]
        axes.plot(x, line, "--", color=colour_of("flops_intercept"), label="proportional to FLOPs")
        axes.set_ylim(bottom=0)
        label_axes(axes, title, "input channels, of 50 x 50 values each", f"energy per iteration [{unit}]")
        axes.legend(loc="upper left")
