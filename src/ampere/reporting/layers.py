"""Where a model's joules go: by kind of layer, and layer by layer."""

from __future__ import annotations

from collections import Counter

from ampere.core import Layer, Network, units
from ampere.estimation.estimate import Z90, Estimate, LayerShare
from ampere.reporting import bars, naming, strip

from .origin import beneath
from .record import Chart, Table
from .theme import SERIES

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
    for share in estimate.layers:
        joules[share.kind] = joules.get(share.kind, 0.0) + share.joules
    return joules


def kinds_chart(key: str, estimate: Estimate, colours: dict[str, str]) -> Chart:
    joules, counts = by_kind(estimate), Counter(share.kind for share in estimate.layers)
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
    details = {id(s): _detail(layer) for s, layer in zip(estimate.layers, network.layers, strict=False)}
    ranks = {index: rank for rank, index in enumerate(sorted(range(len(shown)), key=lambda i: -shown[i].joules))}
    doubtful = {*estimate.unprofiled, *estimate.extrapolated}
    rows = [
        _bar(share, estimate, details.get(id(share), ""), colours, share.name in doubtful, ranks[i])
        for i, share in enumerate(shown)
    ]
    several = "" if len(shown) == len(estimate.layers) else f" The {SHOWN} dearest layers by name; the table has all."
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
    *layers, step = estimate.layers
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
        for share in estimate.layers
    )
    return Table(("layer", "kind", ">energy", ">90 %", ">share", "note"), rows)
