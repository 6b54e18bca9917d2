"""One model on this device: what it costs, where that goes, and how sure we are."""

from __future__ import annotations

from dataclasses import dataclass

from ampere.core import Network, units
from ampere.core.setup import ALLOCATORS
from ampere.estimation.additive import Additive
from ampere.estimation.estimate import COVERS, Estimate, Estimator
from ampere.estimation.variance import variance_shares
from ampere.reporting import bars

from .layers import called, kinds_chart, layers_chart, placed
from .naming import kind
from .origin import beneath
from .record import Chart, Section, Table

DOUBTS_SHOWN, LEAST_DOUBT = 8, 0.01
NAMES_SHOWN = 8


@dataclass(frozen=True)
class Run:
    """The training that is planned: how long, and from which battery."""

    iterations: int | None = None
    battery_joules: float | None = None
    battery: str = ""


def model_section(
    key: str, network: Network, estimate: Estimate, estimator: Estimator, run: Run, colours: dict[str, str]
) -> Section:
    charts = [kinds_chart(key, estimate, colours), layers_chart(key, network, estimate, colours)]
    model, _ = estimator.of_joules
    if isinstance(model, Additive) and estimate.stddev > 0:
        charts.append(_doubts_chart(key, network, estimate, model, estimator.condition_doubt))
    return Section(
        key,
        f"Where the energy of {estimate.network or 'the network'} goes",
        (where_it_goes(estimate),),
        figures(estimate, run),
        tuple(charts),
        (
            *_doubtful(estimate),
            ("stands for", ALLOCATORS[estimate.allocator]),
            ("covers", COVERS),
            *(("note", n) for n in network.notes),
        ),
    )


def figures(estimate: Estimate, run: Run) -> tuple[tuple[str, str], ...]:
    low, high = estimate.interval90
    scale, unit = units.joules_unit(estimate.joules)
    spread = f"90 % interval {units.three(low / scale)} to {units.three(high / scale)} {unit}"
    shown = [
        (units.joules(estimate.joules), f"for one training iteration, {units.seconds(estimate.seconds)}\n{spread}")
    ]
    if run.iterations:
        n, joules = run.iterations, estimate.total_joules(run.iterations)
        whole = f"{units.joules(low * n)} to {units.joules(high * n)}"
        time = units.seconds(estimate.seconds * n)
        shown.append(
            (units.joules(joules), f"for {n:,} iterations ({units.watt_hours(joules)}, {time})\n90 % interval {whole}")
        )
        if run.battery_joules:
            shown.append((units.percent(joules / run.battery_joules), f"of a battery of {run.battery}"))
    elif run.battery_joules:
        shown.append((f"{int(run.battery_joules / estimate.joules):,}", f"iterations from a battery of {run.battery}"))
    return tuple(shown)


def where_it_goes(estimate: Estimate) -> str:
    """The fewest layers that take half of it, by name."""
    layers = sorted(estimate.by_layer[:-1], key=lambda share: -share.joules)
    taken, count = 0.0, 0
    while count < len(layers) and taken < 0.5 * estimate.joules:
        taken, count = taken + layers[count].joules, count + 1
    if not count:
        return "All of the energy is what a step costs besides its layers."
    some = ", ".join(f"{called(s)} ({kind(s.kind)})" if s.name else called(s) for s in layers[:count][:3])
    more = f" and {count - 3} more" if count > 3 else ""
    takes = "takes" if count == 1 else "take"
    return (
        f"{count} of {len(layers)} layers {takes} {units.percent(taken / estimate.joules)} of the energy: {some}{more}."
    )


def _doubtful(estimate: Estimate) -> list[tuple[str, str]]:
    relative = units.percent((estimate.interval90[1] - estimate.joules) / estimate.joules)
    said = [("how sure", f"± {relative} in 9 of 10 cases")]
    if estimate.unprofiled:
        said.append(
            (
                "not profiled",
                f"{_some(estimate.unprofiled)}: no layer of such a kind was measured; priced by its arithmetic",
            )
        )
    if estimate.extrapolated:
        said.append(
            ("extrapolated", f"{_some(estimate.extrapolated)}: far larger or smaller than any layer that was measured")
        )
    if not (estimate.unprofiled or estimate.extrapolated):
        said.append(("known", "every layer lies within the kinds and sizes that were measured"))
    return said


def _some(names: tuple[str, ...]) -> str:
    more = len(names) - NAMES_SHOWN
    return ", ".join(map(placed, names[:NAMES_SHOWN])) + (f" and {more} more" if more > 0 else "")


def _doubts_chart(key: str, network: Network, estimate: Estimate, model: Additive, condition: float) -> Chart:
    found = variance_shares(model, network, estimate.allocator == "system")
    busy = (condition * estimate.joules / estimate.stddev) ** 2
    names: dict[object, list[str]] = {}
    for layer in network.layers:
        names.setdefault(layer, []).append(placed(layer.name) or kind(layer.kind))
    parts = {_together(names[layer]): share for layer, share in found.layers.items()}
    dearest = sorted(parts.items(), key=lambda item: -item[1])
    shown = [(name, share) for name, share in dearest[:DOUBTS_SHOWN] if share >= LEAST_DOUBT]
    rest = dearest[len(shown) :]
    shown, rest = (dearest, []) if len(rest) == 1 else (shown, rest)
    if rest:
        shown.append(("all layers" if not shown else f"({len(rest)} other layers)", sum(share for _, share in rest)))
    shown += [
        ("network as a whole", found.whole),
        ("step overhead", found.step),
        ("noise of measuring", found.measuring),
    ]
    shown = [(name, share * (1 - busy)) for name, share in shown]
    shown += [("how busy the device was", busy)] if busy >= LEAST_DOUBT else []
    rows = [
        bars.Bar(
            name,
            max(share, 0.0),
            f"{100 * share:.0f} %".replace("-0 %", "0 %"),
            f"{name}: {100 * share:.1f} % of the variance",
            colour="rest",
        )
        for name, share in shown
    ]
    return Chart(
        f"{key}-doubts",
        "How sure we are: what the doubt is made of",
        "Shares of the variance of the total. Measuring more networks like this one makes what layers add smaller; the "
        f"noise of measuring stays. {beneath(estimate.meter)}",
        lambda width: bars.draw(rows, width),
        Table(("part", ">share of variance"), tuple((b.name, b.label) for b in rows)),
        full=True,
    )


def _together(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} like it"
