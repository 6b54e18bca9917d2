"""What profiling costs: seconds on the device, and how many networks were trained in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ampere.evaluation.drawing import by
from ampere.evaluation.jobs import ProfileJob, Record, of_family
from ampere.evaluation.plan import Plan, title_of
from ampere.evaluation.session import Session
from ampere.reporting.plotting import BLUE, MUTED, label_axes

TITLE = "seconds that profiling takes"
FIGURE = "Table 1"

# Seconds of profiling and fitting in the paper, of the parts that the simulated devices are modelled on.
PAPER = {
    "simulated:phone-android": {"lenet5": 694, "cnn5": 1688, "har": 2188, "lstm": 1615},
    "simulated:phone-ios": {"lenet5": 1201, "cnn5": 1012, "har": 2446, "lstm": 1168},
    "simulated:xavier": {"lenet5": 184, "cnn5": 421, "har": 740, "lstm": 1145},
    "simulated:tx2": {"lenet5": 285, "cnn5": 1211, "har": 4433, "lstm": 422},
    "simulated:server": {"lenet5": 235, "cnn5": 268, "har": 562, "lstm": 436},
}


def jobs(plan: Plan) -> list[ProfileJob]:
    return [of_family(plan, device, family) for device in plan.all_devices for family in plan.families(device)]


def records(session: Session) -> Iterator[Record]:
    for job in jobs(session.plan):
        profile = session.get(job)
        yield {
            "device": job.device,
            "device_title": title_of(job.device),
            "meter": profile.meter.name,
            "family": job.family,
            "method": job.method,
            "seconds": profile.profiling_seconds,
            "measurements": len(profile.observations),
            "paper_seconds": PAPER.get(job.device, {}).get(job.family),
        }


def draw(figure: Any, records: Sequence[Record]) -> None:
    """Seconds of profiling by family and device, with the paper's as open marks where it has them."""
    devices = by(records, "device_title")
    figure.set_size_inches(8.0, 1.4 + 0.19 * len(records))
    axes = figure.add_subplot()
    places, labels = [], []
    at = 0.0
    for device, rows in devices.items():
        for row in rows:
            axes.plot([row["seconds"]], [at], "o", color=BLUE, label="Ampere" if at == 0 else "_")
            axes.annotate(
                f"{row['measurements']}", (row["seconds"], at), (6, -3), textcoords="offset points", fontsize=7
            )
            if row["paper_seconds"]:
                axes.plot([row["paper_seconds"]], [at], "o", mfc="none", color=MUTED, label="the paper, real device")
            places.append(at)
            labels.append(f"{row['family']}   {device if row is rows[0] else ''}")
            at -= 1.0
        at -= 0.6
    axes.set_xscale("log")
    axes.set_xlim(1, 10_000)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_yticks(places, labels)
    label_axes(axes, "", "seconds of profiling on the device (number at a mark: networks trained)", "")
    handles, names = axes.get_legend_handles_labels()
    unique = dict(zip(names, handles, strict=True))
    axes.legend(unique.values(), unique.keys(), frameon=False, fontsize=8)
