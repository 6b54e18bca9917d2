"""Identical convolutions stacked between an input and an output layer: does each one add the same energy?

    input conv | conv x k | linear,   k = 0, 1, 2, ...

Beside it the sum of the same layers trained alone, as NeuralPower profiles them: each pays for reading what
its neighbour has just written, and for a training step of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ampere.network import Layer
from ampere.profiling.experiment import Experiment, of_layers

from ..blocks_job import BlocksJob
from ..catalogue import Record
from ..lab import Lab
from ..layers import conv, linear, measured
from ..plan import Plan

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


def alone_job(plan: Plan, device: str) -> BlocksJob:
    def build() -> list[Experiment]:
        return [of_layers([layer], BATCH) for layer in stack(1)]

    return BlocksJob(device, "stack-layers-alone", build, 3, plan.either(3, 8), 0.2)


def jobs(plan: Plan) -> list[BlocksJob]:
    return [job(plan, device) for device in plan.devices for job in (stacks_job, alone_job)]


def records(lab: Lab) -> Iterator[Record]:
    for device in lab.plan.devices:
        stacks = lab.get(stacks_job(lab.plan, device))
        alone = [o.measurement.joules if o else None for o in lab.get(alone_job(lab.plan, device))]
        seen = [(depth, o) for depth, o in zip(depths(lab.plan), stacks, strict=True) if o]
        slope, intercept = np.polyfit([d for d, _ in seen], [o.measurement.joules for _, o in seen], 1)
        for depth, observation in seen:
            yield {
                **measured(device, observation),
                "hidden_layers": depth,
                "line_joules": float(intercept + slope * depth),
                "summed_alone_joules": _summed(alone, depth),
            }


def _summed(alone: list[float | None], depth: int) -> float | None:
    first, hidden, last = alone
    if first is None or last is None or hidden is None:
        return None
    return first + depth * hidden + last
