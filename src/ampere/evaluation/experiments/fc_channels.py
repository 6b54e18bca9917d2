"""A fully connected layer over its input channels: FLOPs grow in a straight line, energy need not.

The paper's Gaussian process is fitted to the points that it chooses by itself; the other points test it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean
from typing import Any

import numpy as np

from ampere.estimation.sequential import ChannelGP
from ampere.evaluation.drawing import colour_of, device_panels, unit_for
from ampere.evaluation.jobs import BlocksJob, Record
from ampere.evaluation.layers import flops_of, guided, linear, measured
from ampere.evaluation.plan import Plan
from ampere.evaluation.session import Session
from ampere.profiling.experiment import Experiment, of_layers
from ampere.reporting.plotting import INK, label_axes

TITLE = "energy of a fully connected layer over its channels, the GP's fit, and FLOPs"
FIGURE = "Fig. 5"

BATCH, PLACES, CLASSES = 4, 50 * 50, 10  # the paper's input: (4, channels, 50, 50)


def channels(plan: Plan) -> list[int]:
    return [1, *range(4, 65, plan.either(6, 2))]


def fc_job(plan: Plan, device: str) -> BlocksJob:
    def build() -> list[Experiment]:
        return [of_layers([linear(c * PLACES, CLASSES, BATCH)], BATCH) for c in channels(plan)]

    return BlocksJob(device, "fc-channels", build, len(channels(plan)), plan.either(3, 8), 0.055)


def jobs(plan: Plan) -> list[BlocksJob]:
    return [fc_job(plan, device) for device in plan.devices]


def records(session: Session) -> Iterator[Record]:
    for device in session.plan.devices:
        found = zip(channels(session.plan), session.get(fc_job(session.plan, device)), strict=True)
        seen = {c: o for c, o in found if o}
        flops = {c: flops_of([linear(c * PLACES, CLASSES, BATCH)]) for c in seen}
        relative = np.array([flops[c] / o.joules for c, o in seen.items()])
        joules_a_flop = float(relative.sum() / (relative**2).sum())  # the best line through the origin
        process, profiled = guided({(c,): o.joules for c, o in seen.items()})
        for c, observation in seen.items():
            yield {
                **measured(device, observation),
                "channels": c,
                "flops": flops[c],
                "flops_joules": joules_a_flop * flops[c],
                "profiled": (c,) in profiled,
                **_fit(process, c),
            }


def _fit(process: ChannelGP, channels: int) -> Record:
    means, covariance = process.posterior(np.array([[float(channels)]]))
    return {"gp_joules": float(means[0]), "gp_stddev": float(max(covariance[0, 0], 0.0) ** 0.5)}


def draw(figure: Any, records: Sequence[Record]) -> None:
    """Joules of one fully connected layer over its channels, the GP through the profiled points, and FLOPs."""
    for axes, title, rows in device_panels(figure, records, width=4.6, height=3.6):
        scale, unit = unit_for(r["joules"] for r in rows)
        x = [r["channels"] for r in rows]
        middle = [r["gp_joules"] / scale for r in rows]
        band = [2 * r["gp_stddev"] / scale for r in rows]
        low, high = ([m + sign * b for m, b in zip(middle, band, strict=True)] for sign in (-1, 1))
        gp, line = colour_of("sequential"), colour_of("flops")
        axes.fill_between(x, low, high, color=gp, alpha=0.15, lw=0, label="two standard deviations")
        tests = [r for r in rows if not r["profiled"]] or rows
        axes.plot(x, middle, color=gp, lw=1.6, label=f"GP's fit ({_off(tests, 'gp_joules')})")
        at_flops = [r["flops_joules"] / scale for r in rows]
        axes.plot(x, at_flops, "--", color=line, lw=1.6, label=f"proportional to FLOPs ({_off(tests, 'flops_joules')})")
        for word, wanted, face in (("trained, profiled", True, INK), ("trained, not profiled", False, "white")):
            own = [r for r in rows if r["profiled"] == wanted]
            spots = [r["channels"] for r in own], [r["joules"] / scale for r in own]
            axes.plot(*spots, "o", ms=5, mfc=face, mec=INK, ls="", label=word, zorder=3)
        axes.set_ylim(bottom=0)
        label_axes(axes, title, "input channels, of 50 x 50 values each", f"energy per iteration [{unit}]")
        axes.legend(loc="upper left")


def _off(rows: Sequence[Record], by: str) -> str:
    return f"{100 * mean(abs(r[by] / r['joules'] - 1) for r in rows):.1f} % off"
