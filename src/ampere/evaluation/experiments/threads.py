"""Joules and seconds of an iteration against the number of threads: how many of them cost the fewest joules?

More threads shorten a step by less than their number, and each draws power, whether it works or spins while it waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import geometric_mean
from typing import Any

from ampere.core.units import percent
from ampere.evaluation.drawing import by, device_panels
from ampere.evaluation.jobs import BLOCK_SECONDS, BlocksJob, Record
from ampere.evaluation.plan import Plan, thread_counts, title_of
from ampere.evaluation.session import Session
from ampere.evaluation.validation import unseen
from ampere.models.loading import find_space
from ampere.profiling.experiment import Experiment
from ampere.profiling.sources import SpaceSource
from ampere.reporting.plotting import INK, MUTED, label_axes
from ampere.reporting.words import joules_origin

TITLE = "joules and seconds against the number of threads"
FIGURE = ""
FAMILIES, QUICK_FAMILIES = ("cnn5", "lstm", "transformer", "resnet"), ("cnn5",)


def jobs(plan: Plan) -> list[BlocksJob]:
    """All thread counts of a family one after the other, so that little changes between them."""
    families = QUICK_FAMILIES if plan.quick else FAMILIES
    return [
        _job(plan, device, family, threads)
        for device in plan.devices
        for family in families
        for threads in thread_counts(device)
    ]


def _job(plan: Plan, device: str, family: str, threads: int) -> BlocksJob:
    count = plan.either(3, 8)

    def build() -> list[Experiment]:
        return unseen(SpaceSource(find_space(family)), (), count, plan.seed)

    seconds = BLOCK_SECONDS.get(family, 0.3)
    return BlocksJob(device, f"threads-{family}", build, count, plan.rounds, seconds, threads=threads)


def records(session: Session) -> Iterator[Record]:
    """The mean network's joules and seconds on each number of threads, relative to one thread."""
    found = {(job.device, job.subject, job.threads): session.get(job) for job in jobs(session.plan)}
    for device, subject in dict.fromkeys((device, subject) for device, subject, _ in found):
        counts = thread_counts(device)
        every = [found[device, subject, threads] for threads in counts]
        networks = [i for i in range(len(every[0])) if all(costs[i] for costs in every)]
        if not networks:
            continue
        kept = [[cost for i in networks if (cost := costs[i])] for costs in every]
        joules = [geometric_mean([c.joules for c in costs]) for costs in kept]
        seconds = [geometric_mean([c.seconds for c in costs]) for costs in kept]
        fewest = counts[joules.index(min(joules))]
        for place, threads in enumerate(counts):
            yield {
                "device": device,
                "device_title": title_of(device),
                "meter": kept[0][0].meter.name,
                "joules_are": joules_origin(kept[0][0].meter),
                "family": subject.removeprefix("threads-"),
                "networks": len(networks),
                "threads": threads,
                "joules": joules[place],
                "seconds": seconds[place],
                "relative_joules": joules[place] / joules[0],
                "relative_seconds": seconds[place] / seconds[0],
                "fewest_joules_on": fewest,
            }


def answers(records: Sequence[Record]) -> list[str]:
    """How many threads cost the fewest joules, a line for each device and family."""
    lines = []
    for row in (r for r in records if r["threads"] == r["fewest_joules_on"]):
        threads = f"{row['threads']} thread{'s' if row['threads'] > 1 else ''}"
        saved, faster = 1 - row["relative_joules"], 1 / row["relative_seconds"]
        compared = f", {percent(saved)} less than 1 thread, {faster:.2g} times as fast" if row["threads"] > 1 else ""
        lines.append(f"{row['family']} on {row['device_title']}: fewest joules with {threads}{compared}")
    return lines


def draw(figure: Any, records: Sequence[Record]) -> None:
    """Joules and seconds relative to one thread; a ring where joules are fewest."""
    for axes, title, rows in device_panels(figure, records, width=4.4, height=3.4):
        for place, (family, own) in enumerate(by(rows, "family").items()):
            counts, colour = [r["threads"] for r in own], f"C{place}"
            axes.plot(counts, [r["relative_joules"] for r in own], "o-", color=colour, ms=4, label=f"{family}: joules")
            axes.plot(
                counts, [r["relative_seconds"] for r in own], "--", color=colour, lw=1, label=f"{family}: seconds"
            )
            best = next(r for r in own if r["threads"] == r["fewest_joules_on"])
            axes.plot([best["threads"]], [best["relative_joules"]], "o", mfc="none", color=INK, ms=10)
        axes.axhline(1, color=MUTED, lw=0.8)
        axes.set_xscale("log", base=2)
        counts = sorted({r["threads"] for r in rows})
        axes.set_xticks(counts, [str(count) for count in counts])
        axes.set_ylim(0, None)
        axes.legend(fontsize=7, frameon=False)
        label_axes(axes, title, "threads", "an iteration, relative to 1 thread")
