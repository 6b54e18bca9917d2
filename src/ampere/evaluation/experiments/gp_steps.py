"""The paper's Gaussian process as it learns a fully connected layer: two bounds, then wherever it is most in doubt.

Every candidate is measured beforehand, so the steps can be replayed, and the curve be seen beside the truth.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ampere.estimation.sequential import ChannelGP
from ampere.evaluation.blocks_job import BlocksJob
from ampere.evaluation.catalogue import Record
from ampere.evaluation.lab import Lab
from ampere.evaluation.layers import linear
from ampere.evaluation.plan import Plan, title_of
from ampere.profiling.experiment import Experiment, of_layers

TITLE = "the Gaussian process after each profiling step of a fully connected layer"
FIGURE = "Fig. 4"

BATCH, PLACES, CLASSES = 10, 28 * 28, 10  # the paper's input: (10, channels, 28, 28)
STEPS, WIDEST, CURVE = 6, 64, 64


def channels(plan: Plan) -> list[int]:
    return [1, *range(4, WIDEST + 1, plan.either(6, 3))]


def fc_job(plan: Plan, device: str) -> BlocksJob:
    def build() -> list[Experiment]:
        return [of_layers([linear(c * PLACES, CLASSES, BATCH)], BATCH) for c in channels(plan)]

    return BlocksJob(device, "fc-steps", build, len(channels(plan)), plan.either(3, 8), 0.12)


def jobs(plan: Plan) -> list[BlocksJob]:
    return [fc_job(plan, device) for device in plan.devices]


def records(lab: Lab) -> Iterator[Record]:
    for device in lab.plan.devices:
        found = zip(channels(lab.plan), lab.get(fc_job(lab.plan, device)), strict=True)
        truth = {c: o.measurement.joules for c, o in found if o}
        head = {"device": device, "device_title": title_of(device), "truth": [[c, j] for c, j in truth.items()]}
        known = [min(truth), max(truth)]
        for step in range(len(known), STEPS + 1):
            process = ChannelGP(_column(known), np.array([truth[c] for c in known]))
            left = [c for c in truth if c not in known]
            doubts = process.deviations(_column(left))
            next_one = left[int(np.argmax(doubts))]
            yield {**head, "step": step, "known": list(known), "next": next_one, "curve": _curve(process)}
            known.append(next_one)


def _column(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=float)[:, None]


def _curve(process: ChannelGP) -> list[list[float]]:
    """Channels, mean, standard deviation."""
    x = list(range(1, WIDEST + 1, WIDEST // CURVE))
    means, covariance = process.posterior(_column(x))
    deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return [[float(c), float(m), float(d)] for c, m, d in zip(x, means, deviations, strict=True)]
