"""Where a model's joules go: by kind of layer, and layer by layer."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ampere.core import Layer, Network, units
from ampere.core.setup import ALLOCATORS
from ampere.estimation.additive import Additive
from ampere.estimation.estimate import COVERS, Z90, Estimate, Estimator, LayerShare
from ampere.estimation.variance import doubts
from ampere.reporting import bars, strip
from ampere.reporting import words as naming

from .drawing import SERIES
from .record import Chart, Section, Table
from .words import beneath, kind_name

MOST_BARS = 24  # a longer network shows its dearest layers, and the others as one
SHOWN = 20


def kind_colours(estimates: list[Estimate]) -> dict[str, str]:
    """The dearest kinds get colours of their own, the first model's first, and the same ones in every chart."""
    order: list[str] = []
    for estimate in estimates:
        joules = by_kind(estimate)
        order += sorted((k for k in joules if k != "step" and k not in order), key=lambda k: -joules[k])
    return dict(zip(order, SERIES, strict=False))


def by_kind(estimate: Estimate) -> dict[str, float]:
    joules: dict[str, float] = {}
    for share in estimate.by_layer:
        joules[share.kind] = joules.get(share.kind, 0.0) + share.joules
    return joules


def kinds_chart(key: str, estimate: Estimate, colours: dict[str, str]) -> Chart:
    joules, counts = by_kind(estimate), Counter(share.kind for share in estimate.by_layer)
    order = sorted(joules, key=lambda k: (k == "step", -joules[k]))
    rows = []
    for name in order:
        part, many = joules[name] / estimate.joules, "" if name == "step" else f"{counts[name]} layers, "
        tip = f"{naming.kind(name)}: {many}{units.joules(joules[name])}, {units.percent(part)}"
        rows.append(strip.Share(naming.kind(name), part, units.percent(part), tip, colours.get(name, "rest")))
    cells = tuple((r.name, str(counts[k]), units.joules(joules[k]), r.label) for k, r in zip(order, rows, strict=True))
    return Chart(
        f"{key}-kinds",
        "By kind of layer",
        f"The energy of one training iteration, divided among kinds of layers. {beneath(estimate.meter)}",
        lambda width: strip.draw(rows, width),
        Table(("kind", ">layers", ">energy", ">share"), cells),
        full=True,
    )


def layers_chart(key: str, network: Network, estimate: Estimate, colours: dict[str, str]) -> Chart:
    shown = folded(estimate)
    details = {id(s): _detail(layer) for s, layer in zip(estimate.by_layer, network.layers, strict=False)}
    ranks = {index: rank for rank, index in enumerate(sorted(range(len(shown)), key=lambda i: -shown[i].joules))}
    doubtful = {*estimate.unprofiled, *estimate.extrapolated}
    rows = [
        _bar(share, estimate, details.get(id(share), ""), colours, share.name in doubtful, ranks[i])
        for i, share in enumerate(shown)
    ]
    several = "" if len(shown) == len(estimate.by_layer) else f" The {SHOWN} dearest layers by name; the table has all."
    pale = " Pale bars: outside what was measured on this device." if doubtful else ""
    return Chart(
        f"{key}-layers",
        "Layer by layer, in the order in which they run",
        f"Energy of each layer in one iteration, forward and backward; whiskers are 90 % intervals.{several}{pale} "
        f"{beneath(estimate.meter)}",
        lambda width: bars.draw(rows, width),
        _table(estimate),
        full=True,
        orders=(("cost", "dearest first"),),
    )


def folded(estimate: Estimate) -> list[LayerShare]:
    *layers, step = estimate.by_layer
    if len(layers) <= MOST_BARS:
        return [*layers, step]
    kept = set(sorted(range(len(layers)), key=lambda i: -layers[i].joules)[:SHOWN])
    others = [share.joules for i, share in enumerate(layers) if i not in kept]
    return [*(layers[i] for i in sorted(kept)), LayerShare(f"({len(others)} other layers)", "", sum(others), 0.0), step]


def _bar(
    share: LayerShare, estimate: Estimate, detail: str, colours: dict[str, str], doubtful: bool, rank: int
) -> bars.Bar:
    half, part = Z90 * share.stddev, share.joules / estimate.joules
    sure = f" ± {units.joules(half)}" if half else ""
    told = f"{called(share)} ({detail})" if detail else called(share)
    return bars.Bar(
        called(share),
        share.joules,
        f"{units.joules(share.joules)}  {units.percent(part)}",
        f"{told}: {units.joules(share.joules)}{sure}, {units.percent(part)} of the iteration",
        detail,
        share.joules - half if half else None,
        share.joules + half if half else None,
        colours.get(share.kind, "rest"),
        doubtful,
        {"cost": rank},
    )


def _detail(layer: Layer) -> str:
    return f"{naming.kind(layer.kind)} {layer.channels_in:,} → {layer.channels_out:,}"


def placed(name: str) -> str:
    """A name that is only a number is a place in a list of layers."""
    return f"layer {name}" if name.isdigit() else name


def called(share: LayerShare) -> str:
    if share.kind == "step":
        return "step overhead"
    return placed(share.name) or naming.kind(share.kind)


def _table(estimate: Estimate) -> Table:
    notes = {
        **dict.fromkeys(estimate.extrapolated, "extrapolated"),
        **dict.fromkeys(estimate.unprofiled, "not profiled"),
    }
    rows = tuple(
        (
            called(share),
            naming.kind(share.kind),
            units.joules(share.joules),
            f"± {units.joules(Z90 * share.stddev)}" if share.stddev else "",
            units.percent(share.joules / estimate.joules),
            notes.get(share.name, ""),
        )
        for share in estimate.by_layer
    )
    return Table(("layer", "kind", ">energy", ">90 %", ">share", "note"), rows)


# One model on this device: what it costs, where that goes, and how sure we are.

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
    some = ", ".join(f"{called(s)} ({kind_name(s.kind)})" if s.name else called(s) for s in layers[:count][:3])
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
    found = doubts(model, network, estimate.allocator == "system")
    busy = (condition * estimate.joules / estimate.stddev) ** 2
    names: dict[object, list[str]] = {}
    for layer in network.layers:
        names.setdefault(layer, []).append(placed(layer.name) or kind_name(layer.kind))
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
