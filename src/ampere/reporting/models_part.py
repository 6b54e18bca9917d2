"""Several models on one device: which is cheaper, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence

from ampere.comparison import compare
from ampere.core import Network, units
from ampere.estimation.estimate import Estimate, Estimator
from ampere.reporting import bars

from .origin import beneath
from .record import Chart, Section, Table

MOST_SENTENCES = 4


def side_by_side(networks: Sequence[Network], estimates: Sequence[Estimate], estimator: Estimator) -> Section:
    rows = [bar(estimate.network or "network", estimate) for estimate in estimates]
    told = [
        (bar.name, bar.label, interval(e), units.seconds(e.seconds), str(n.batch))
        for bar, e, n in zip(rows, estimates, networks, strict=True)
    ]
    chart = Chart(
        "models",
        "Energy of one training iteration",
        "Whiskers are 90 % intervals of each model alone. They may overlap although it is sure which model is cheaper: "
        f"doubt about layers that both have cancels, and the words above count that. {beneath(estimates[0].meter)}",
        lambda width: bars.draw(rows, width),
        Table(("model", ">energy", ">90 % interval", ">time", ">batch"), tuple(told)),
        full=True,
    )
    return Section("models", "The models side by side", _sentences(networks, estimates, estimator), charts=(chart,))


def _sentences(networks: Sequence[Network], estimates: Sequence[Estimate], estimator: Estimator) -> tuple[str, ...]:
    """Every model beside the first, as `ampere compare` would say it."""
    first, *others = networks
    said = []
    for other in others[:MOST_SENTENCES]:
        found = compare(other, first, [estimator], estimates[0].allocator)
        per = " for each training example, as their batches differ" if found.per == "example" else ""
        said.append(f"{found.sentence(found.devices[0])}{per}.")
    return tuple(said)


def interval(estimate: Estimate) -> str:
    low, high = estimate.interval
    return f"{units.joules(low)} to {units.joules(high)}"


def bar(name: str, estimate: Estimate, detail: str = "") -> bars.Bar:
    shown, (low, high) = units.joules(estimate.joules), estimate.interval
    tip = f"{name}: {shown}, 90 % interval {interval(estimate)}"
    return bars.Bar(name, estimate.joules, shown, tip, detail, low=low, high=high)
