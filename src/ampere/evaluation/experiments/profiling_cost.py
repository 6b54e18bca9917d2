"""What profiling costs until a method ends by itself: seconds on the device, measurements, and joules.

The paper's method ends by its own rules, however long that takes. Ampere ends with the seconds that it was given: by
default so many that a device's meter allows about a hundred measurements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ampere.core.units import joules_unit
from ampere.evaluation.drawing import by, look_of, round_ticks, shared_legend
from ampere.evaluation.jobs import ProfileJob, Record, of_family
from ampere.evaluation.plan import PAPERS, Plan, title_of
from ampere.evaluation.session import Session
from ampere.reporting.plotting import FAINT, MUTED, label_axes
from ampere.reporting.words import joules_origin, method_name

TITLE = "what profiling costs until each method ends by itself"
FIGURE = "Table 1"

# Seconds of profiling and fitting in the paper, of the parts that the simulated devices are modelled on.
PAPER = {
    "simulated:phone-android": {"lenet5": 694, "cnn5": 1688, "har": 2188, "lstm": 1615},
    "simulated:phone-ios": {"lenet5": 1201, "cnn5": 1012, "har": 2446, "lstm": 1168},
    "simulated:xavier": {"lenet5": 184, "cnn5": 421, "har": 740, "lstm": 1145},
    "simulated:tx2": {"lenet5": 285, "cnn5": 1211, "har": 4433, "lstm": 422},
    "simulated:server": {"lenet5": 235, "cnn5": 268, "har": 562, "lstm": 436},
}
FAMILIES, QUICK_FAMILIES = ("lenet5", "cnn5", "har", "lstm"), ("cnn5",)  # of the paper's table


def jobs(plan: Plan) -> list[ProfileJob]:
    found = []
    for device in plan.all_devices:
        for family in [f for f in plan.families(device) if f in (QUICK_FAMILIES if plan.quick else FAMILIES)]:
            found += [of_family(plan, device, family), ProfileJob(device, family, math.inf, plan.seed, *PAPERS)]
    return found


def records(session: Session) -> Iterator[Record]:
    for job in jobs(session.plan):
        profile = session.get(job)
        yield {
            "device": job.device,
            "device_title": title_of(job.device),
            "meter": profile.meter.name,
            "joules_are": joules_origin(profile.meter),
            "family": job.family,
            "method": job.method,
            "seconds": profile.profiling_seconds,
            "measurements": len(profile.observations),
            "joules": profile.profiling_joules,
            "ended_by": profile.ended_by or "its seconds",
            "paper_seconds": PAPER.get(job.device, {}).get(job.family),
        }


def draw(figure: Any, records: Sequence[Record]) -> None:
    """Seconds, measurements and joules by family and device; open marks: the paper's own table, on real devices."""
    rows = [(d, f, own) for d, all_ in by(records, "device_title").items() for f, own in by(all_, "family").items()]
    figure.set_size_inches(9.0, 1.0 + 0.42 * len(rows))
    first, *others = figure.subplots(1, 3, sharey=True)
    scale, unit = joules_unit(max((r["joules"] or 0.0 for r in records), default=1.0))
    columns: list[tuple[Any, str, Callable[[Record], float | None]]] = [
        (first, "seconds on the device", lambda r: r["seconds"]),
        (others[0], "measurements", lambda r: r["measurements"]),
        (others[1], f"energy of profiling [{unit}]", lambda r: r["joules"] and r["joules"] / scale),
    ]
    for axes, words, value in columns:
        for place, (_, _, own) in enumerate(rows):
            axes.axhline(place, color=FAINT, lw=0.8, zorder=0)
            for row in own:
                look, found = look_of(row["method"]), value(row)
                if found:
                    axes.plot([found], [place], look.marker, color=look.colour, ms=6, label=method_name(row["method"]))
                    written = f"{found:.0f}" if found >= 10 else f"{found:.2g}"
                    above = 5 if row["method"] == PAPERS[0] else -11
                    spot = {"textcoords": "offset points", "ha": "center", "fontsize": 7.5}
                    axes.annotate(written, (found, place), (0, above), **spot)
            if axes is first and own[0]["paper_seconds"]:
                open_mark = {"mfc": "none", "color": MUTED, "ms": 7, "label": "printed in the paper, real device"}
                axes.plot([own[0]["paper_seconds"]], [place], "D", **open_mark)
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        axes.set_xlim(low / 1.6, max(high, 6 * low) * 1.6)
        round_ticks(axes.xaxis)
        label_axes(axes, "", words, "")
    first.set_yticks(range(len(rows)), [f"{family}, {device}" for device, family, _ in rows])
    first.set_ylim(len(rows) - 0.4, -0.8)
    shared_legend(figure)
