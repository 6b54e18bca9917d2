"""The paper's Gaussian process as it learns a fully connected layer: two bounds, then wherever it is most uncertain.

Every candidate is measured beforehand, so the steps can be replayed and the curve compared with the truth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ampere.estimation.sequential import ChannelGP
from ampere.evaluation.drawing import panels, shared_legend, unit_for
from ampere.evaluation.jobs import BlocksJob, Record
from ampere.evaluation.layers import linear
from ampere.evaluation.plan import Plan, title_of
from ampere.evaluation.session import Session
from ampere.profiling.experiment import Experiment, of_layers
from ampere.reporting.plotting import BLUE, INK, MUTED, label_axes

TITLE = "the Gaussian process after each profiling step of a fully connected layer"
FIGURE = "Fig. 4"

BATCH, PLACES, CLASSES = 10, 28 * 28, 10  # the paper's input: (10, channels, 28, 28)
STEPS, WIDEST, CURVE = 6, 64, 64


def channels(plan: Plan) -> list[int]:
    return [1, *range(4, WIDEST + 1, plan.either(6, 3))]


def fc_job(plan: Plan, device: str) -> BlocksJob:
    def build() -> list[Experiment]:
        return [of_layers([linear(c * PLACES, CLASSES, BATCH)], BATCH) for c in channels(plan)]

    return BlocksJob(device, "fc-steps", build, len(channels(plan)), plan.either(3, 8), 0.04)


def jobs(plan: Plan) -> list[BlocksJob]:
    return [fc_job(plan, device) for device in plan.devices]


def records(session: Session) -> Iterator[Record]:
    for device in session.plan.devices:
        found = zip(channels(session.plan), session.get(fc_job(session.plan, device)), strict=True)
        truth = {c: o.joules for c, o in found if o}
        head = {"device": device, "device_title": title_of(device), "truth": [[c, j] for c, j in truth.items()]}
        known = [min(truth), max(truth)]
        for step in range(len(known), STEPS + 1):
            process = ChannelGP(_column(known), np.array([truth[c] for c in known]))
            left = [c for c in truth if c not in known]
            next_one = left[int(np.argmax(process.deviations(_column(left))))]
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


def draw(figure: Any, records: Sequence[Record]) -> None:
    """One panel per step: what is known, what the process makes of it, and where it looks next."""
    for axes, record in zip(panels(figure, len(records), columns=5, width=2.8, height=2.8), records, strict=True):
        truth = dict(map(tuple, record["truth"]))
        scale, unit = unit_for(truth.values())
        x, mean, stddev = zip(*record["curve"], strict=True)
        low = [(m - 2 * d) / scale for m, d in zip(mean, stddev, strict=True)]
        high = [(m + 2 * d) / scale for m, d in zip(mean, stddev, strict=True)]
        axes.fill_between(x, low, high, color=BLUE, alpha=0.15, lw=0, label="two standard deviations")
        axes.plot(x, [m / scale for m in mean], color=BLUE, lw=1.4, label="mean")
        axes.plot(
            list(truth),
            [j / scale for j in truth.values()],
            "o",
            color=MUTED,
            alpha=0.4,
            ms=4,
            label="not measured yet",
        )
        axes.plot(record["known"], [truth[c] / scale for c in record["known"]], "o", color=INK, ms=5, label="profiled")
        axes.axvline(record["next"], color=MUTED, lw=0.8, ls="--", label="next")
        axes.set_ylim(0, 1.45 * max(truth.values()) / scale)
        label_axes(axes, f"{record['device_title']}, {record['step']} points", "input channels", f"energy [{unit}]")
    shared_legend(figure)
