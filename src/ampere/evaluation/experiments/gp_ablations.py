"""The paper's Gaussian process with other kernels, with points chosen at random, and with fewer or more points.

A convolution is trained at every point of a grid of channels. Each seed keeps a quarter of the grid for tests, and
profiling is replayed on the rest, so that every choice sees the same measurements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random
from statistics import mean, stdev
from typing import Any

import numpy as np

from ampere.core import Layer
from ampere.estimation.sequential import KERNELS, PAPERS_KERNEL, ChannelGP
from ampere.evaluation.drawing import by, colour_of, panels
from ampere.evaluation.jobs import BlocksJob, Record
from ampere.evaluation.layers import Channels, conv, corners, guided, measured, replayed
from ampere.evaluation.plan import Plan
from ampere.evaluation.session import Session
from ampere.profiling.experiment import Experiment, of_layers
from ampere.reporting.plotting import INK, label_axes

TITLE = "the paper's GP with other kernels, guided or at random, by number of points"
FIGURE = ""

BATCH, SIZE, WIDEST = 10, 14, (32, 64)
TESTED_SHARE = 0.25
MOST = 21  # steps of a replay
KERNEL, CHOICE = "kernel", "choice"  # what is varied
WRITTEN: dict[str, Any] = {"ha": "center", "color": "white", "fontsize": 7.5}
NAMES = {"matern25": "Matern 2.5", "matern15": "Matern 1.5", "rbf": "RBF", "rational_quadratic": "rational\nquadratic"}


def grid(plan: Plan) -> list[Channels]:
    side = plan.either(6, 9)

    def along(widest: int) -> list[int]:
        return [round(1 + (widest - 1) * i / (side - 1)) for i in range(side)]

    return [(a, b) for a in along(WIDEST[0]) for b in along(WIDEST[1])]


def layer(channels: Channels) -> Layer:
    return conv(channels[0], channels[1], SIZE, BATCH)


def grid_job(plan: Plan, device: str) -> BlocksJob:
    def build() -> list[Experiment]:
        return [of_layers([layer(c)], BATCH) for c in grid(plan)]

    return BlocksJob(device, "conv-grid", build, len(grid(plan)), plan.either(2, 6), 0.08)


def jobs(plan: Plan) -> list[BlocksJob]:
    return [grid_job(plan, device) for device in plan.devices]


def records(session: Session) -> Iterator[Record]:
    plan = session.plan
    for device in plan.devices:
        costs = {c: o for c, o in zip(grid(plan), session.get(grid_job(plan, device)), strict=True) if o}
        truth = {c: o.joules for c, o in costs.items()}
        shown = measured(device, next(iter(costs.values())))
        head = {key: shown[key] for key in ("device", "device_title", "meter", "meter_measures")}
        for seed in range(plan.seed, plan.seed + plan.either(3, 10)):
            known, tests = _split(truth, seed)
            for kernel in KERNELS:
                process, points = guided(known, kernel)
                yield {**head, "seed": seed, "varied": KERNEL, "value": kernel, **_error(process, points, tests)}
            for value, rng in (("guided", None), ("random", Random(seed))):
                for process, points in islice(replayed(known, at_random=rng), MOST):
                    yield {**head, "seed": seed, "varied": CHOICE, "value": value, **_error(process, points, tests)}


def _split(truth: dict[Channels, float], seed: int) -> tuple[dict[Channels, float], dict[Channels, float]]:
    """Points to profile, the bounds among them, and points to test on."""
    inner = [c for c in truth if c not in corners(truth)]
    tested = set(Random(seed).sample(inner, round(TESTED_SHARE * len(inner))))
    return {c: j for c, j in truth.items() if c not in tested}, {c: truth[c] for c in tested}


def _error(process: ChannelGP, points: Sequence[Channels], tests: dict[Channels, float]) -> Record:
    said, _ = process.posterior(np.array(list(tests), dtype=float))
    errors = [abs(float(s) / t - 1) for s, t in zip(said, tests.values(), strict=True)]
    return {"points": len(points), "mape": mean(errors)}


def draw(figure: Any, records: Sequence[Record]) -> None:
    """Per device: the error by kernel, each to the end of the paper's rule; then over points, guided and random."""
    devices = by(records, "device_title")
    axes = iter(panels(figure, 2 * len(devices), columns=2, width=4.2, height=3.1))
    for device, rows in devices.items():
        parts = by(rows, "varied")
        seeds = len(by(rows, "seed"))
        _kernels(next(axes), f"{device}, to the 5 % rule, {seeds} seeds", parts[KERNEL])
        _points(next(axes), f"{device}, Matern 2.5, {seeds} seeds", parts[CHOICE])


def _kernels(axes: Any, title: str, rows: Sequence[Record]) -> None:
    for place, (kernel, own) in enumerate(by(rows, "value").items()):
        errors, points = [100 * r["mape"] for r in own], mean(r["points"] for r in own)
        colour = colour_of("sequential" if kernel == PAPERS_KERNEL else "flops")
        spread = stdev(errors) if len(errors) > 1 else 0.0
        axes.bar([place], [mean(errors)], 0.62, yerr=[spread], color=colour, ecolor=INK, capsize=3)
        axes.annotate(
            f"{points:.0f} points", (place, 0), (0, 4), textcoords="offset points", ha="center", color="white"
        )
    kernels = list(by(rows, "value"))
    axes.set_xticks(range(len(kernels)), [NAMES.get(kernel, kernel) for kernel in kernels])
    label_axes(axes, title, "", "mean error on test points [%]")


def _points(axes: Any, title: str, rows: Sequence[Record]) -> None:
    for (value, own), colour, style in zip(
        by(rows, "value").items(), (colour_of("sequential"), colour_of("flops")), ("o-", "s--"), strict=True
    ):
        groups = sorted(by(own, "points").items())
        x, each = [count for count, _ in groups], [[100 * r["mape"] for r in same] for _, same in groups]
        middle, spread = [mean(e) for e in each], [stdev(e) if len(e) > 1 else 0.0 for e in each]
        low, high = ([m + sign * s for m, s in zip(middle, spread, strict=True)] for sign in (-1, 1))
        axes.fill_between(x, low, high, color=colour, alpha=0.15, lw=0)
        axes.plot(x, middle, style, ms=4, lw=1.4, color=colour, label=f"{value} (band: one standard deviation)")
    axes.set_ylim(bottom=0)
    axes.locator_params(axis="x", integer=True)
    label_axes(axes, title, "profiled points", "mean error on test points [%]")
    axes.legend(loc="upper right")
