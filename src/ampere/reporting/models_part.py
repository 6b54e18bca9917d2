"""Several models on one device: which is cheaper, and whether that is sure."""

from __future__ import annotations

from collections.abc import Sequence

from ampere import units
from ampere.estimation import Estimate

from . import bars
from .origin import beneath
from .record import Chart, Section, Table


def side_by_side(estimates: Sequence[Estimate]) -> Section:
    rows = [_bar(estimate) for estimate in estimates]
    told = [
        (bar.name, bar.label, interval(e), units.seconds(e.seconds)) for bar, e in zip(rows, estimates, strict=True)
    ]
    chart = Chart(
        "models",
        "Energy of one training iteration",
        "Whiskers are 90 % intervals: where two overlap, which model is cheaper is not sure. "
        f"{beneath(estimates[0].meter)}",
        lambda width: bars.draw(rows, width),
        Table(("model", ">energy", ">90 % interval", ">time"), tuple(told)),
        full=True,
    )
    return Section("models", "The models side by side", charts=(chart,))


def interval(estimate: Estimate) -> str:
    low, high = estimate.interval90
    return f"{units.joules(low)} to {units.joules(high)}"


def _bar(estimate: Estimate) -> bars.Bar:
    name, (low, high) = estimate.network or "network", estimate.interval90
    shown = units.joules(estimate.joules)
    tip = f"{name}: {shown}, 90 % interval {interval(estimate)}"
    return bars.Bar(name, estimate.joules, shown, tip, low=low, high=high)
