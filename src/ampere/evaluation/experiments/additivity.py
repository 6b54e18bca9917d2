"""Identical convolutions stacked between an input and an output layer: does each one add the same energy?

    input conv | conv x k | linear,   k = 0, 1, 2, ...

Next to it the sum of the same layers as NeuralPower profiles them: forward, backward and update of each layer
alone, so that each pays for reading what its neighbour has just written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ampere.core import Layer
from ampere.evaluation.drawing import colour_of, device_panels, unit_for
from ampere.evaluation.jobs import BlocksJob, Record
from ampere.evaluation.layers import conv, linear, measured
from ampere.evaluation.plan import Plan
from ampere.evaluation.session import Session
from ampere.profiling.experiment import Experiment, of_layers
from ampere.profiling.isolated import alone, stages_of
from ampere.reporting.plotting import BLUE, FAINT, label_axes

TITLE = "energy of stacked layers, and of the same layers profiled alone"
FIGURE = "Fig. 2"

BATCH, SIZE, CHANNELS = 10, 28, 16


def stack(depth: int) -> list[Layer]:
    hidden = [conv(CHANNELS, CHANNELS, SIZE, BATCH)] * depth
    return [conv(1, CHANNELS, SIZE, BATCH), *hidden, linear(CHANNELS * SIZE * SIZE, 10, BATCH)]


def depths(plan: Plan) -> range:
    return range(plan.either(7, 11))


def stacks_job(plan: Plan, device: str) -> BlocksJob:
    def build() -> list[Experiment]:
        return [of_layers(stack(depth), BATCH) for depth in depths(plan)]

    return BlocksJob(device, "stacks", build, len(depths(plan)), plan.either(3, 8), 0.5)


def stages() -> list[tuple[int, str]]:
    """Every stage of the input layer (0), of a hidden one (1) and of the output layer (2)."""
    return [(place, stage) for place, layer in enumerate(stack(1)) for stage in stages_of(layer)]


def stages_job(plan: Plan, device: str) -> BlocksJob:
    def build() -> list[Experiment]:
        return [alone(stack(1)[place], stage, "stage") for place, stage in stages()]

    return BlocksJob(device, "stack-stages", build, len(stages()), plan.either(3, 8), 0.04)


def jobs(plan: Plan) -> list[BlocksJob]:
    return [job(plan, device) for device in plan.devices for job in (stacks_job, stages_job)]


def records(session: Session) -> Iterator[Record]:
    for device in session.plan.devices:
        stacks = session.get(stacks_job(session.plan, device))
        singly = zip(stages(), session.get(stages_job(session.plan, device)), strict=True)
        summed = _summed([(place, o.joules if o else None) for (place, _), o in singly])
        seen = [(depth, o) for depth, o in zip(depths(session.plan), stacks, strict=True) if o]
        slope, intercept = np.polyfit([d for d, _ in seen], [o.joules for _, o in seen], 1)
        for depth, observation in seen:
            yield {
                **measured(device, observation),
                "hidden_layers": depth,
                "line_joules": float(intercept + slope * depth),
                "neuralpower_joules": None if summed is None else summed[0] + depth * summed[1] + summed[2],
            }


def _summed(found: list[tuple[int, float | None]]) -> list[float] | None:
    """Joules of the three layers, each the sum of its stages; None where one could not be measured alone."""
    total = [0.0, 0.0, 0.0]
    for place, joules in found:
        if joules is None:
            return None
        total[place] += joules
    return total


def draw(figure: Any, records: Sequence[Record]) -> None:
    """Joules over the number of stacked layers: a line if layers add up; above it the sum of layers profiled alone."""
    for axes, title, rows in device_panels(figure, records, width=5.4, height=4.0):
        scale, unit = unit_for(r["joules"] for r in rows)
        x = [r["hidden_layers"] for r in rows]
        axes.plot(x, [r["line_joules"] / scale for r in rows], color=FAINT, lw=4, label="straight line", zorder=1)
        axes.plot(x, [r["joules"] / scale for r in rows], "o", color=BLUE, ms=6, label="trained", zorder=3)
        alone = [(r["hidden_layers"], r["neuralpower_joules"]) for r in rows if r["neuralpower_joules"] is not None]
        if alone:
            over = sum(a / r["joules"] for (_, a), r in zip(alone, rows, strict=False)) / len(alone)
            axes.plot(
                [d for d, _ in alone],
                [j / scale for _, j in alone],
                "^--",
                color=colour_of("neuralpower"),
                lw=1,
                label=f"stages of single layers, summed ({over:.2f}x)",
            )
        axes.set_ylim(bottom=0)
        label_axes(
            axes, title, "identical convolutions between input and output layer", f"energy per iteration [{unit}]"
        )
        axes.legend(loc="lower right")
