"""A model's energy by kind of layer, by block and by layer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ampere.core import Layer, Network, units
from ampere.estimation.estimate import Estimate, LayerShare
from ampere.estimation.grouping import Block
from ampere.estimation.interval import Z90

from .charts import Bar, Bars, Share, Shares
from .colours import SERIES
from .record import Chart, Table
from .words import TIMES, joules_note, kind_name

MOST_BARS = 24  # a longer network shows its blocks, or its most expensive layers and the others as one
SHOWN = 20
MOST_INSIDE = 8  # blocks whose layers are shown too


def share_of(part: float, whole: float) -> float:
    """A share of a total, never negative: a part that was estimated below nothing counts as 0."""
    return max(part / whole, 0.0)


def kind_colours(estimates: Sequence[Estimate]) -> dict[str, str]:
    """Colours of the most expensive kinds, the first model's first, the same in every chart."""
    order: list[str] = []
    for estimate in estimates:
        joules = by_kind(estimate)
        order += sorted((k for k in joules if k != "step" and k not in order), key=lambda k: -joules[k])
    return {**dict(zip(order, SERIES, strict=False)), "step": "step"}


def by_kind(estimate: Estimate) -> dict[str, float]:
    joules: dict[str, float] = {}
    for share in estimate.layers:
        joules[share.kind] = joules.get(share.kind, 0.0) + share.joules
    return joules


def kinds_chart(key: str, estimate: Estimate, colours: dict[str, str]) -> Chart:
    """Shares of the kinds that have colours; those without are one share, so that no two look alike."""
    joules, counts = by_kind(estimate), Counter(share.kind for share in estimate.layers)
    order = sorted(joules, key=lambda k: (k == "step", -joules[k]))
    others = [k for k in order if k not in colours]
    rows = []
    for kinds in [*([k] for k in order if k in colours), *([others] if others else [])]:
        name = f"{units.counted(len(kinds), 'other kind')}" if kinds == others else kind_name(kinds[0])
        total, many = sum(joules[k] for k in kinds), sum(counts[k] for k in kinds)
        share = share_of(total, estimate.joules)
        layers = "" if kinds == ["step"] else f"{units.counted(many, 'layer')}, "
        tip = f"{name}: {layers}{units.joules(total)}, {units.percent(share)}"
        rows.append(Share(name, share, units.percent(share), tip, colours.get(kinds[0], "rest")))
    cells = tuple(
        (kind_name(k), str(counts[k]), units.joules(joules[k]), units.percent(share_of(joules[k], estimate.joules)))
        for k in order
    )
    return Chart(
        f"{key}-kinds",
        "By kind of layer",
        f"The energy of one training iteration by kind of layer. {joules_note(estimate.meter)}",
        Shares(rows),
        Table(("kind", ">layers", ">energy", ">share"), cells),
        full=True,
    )


def blocks_chart(
    key: str, network: Network, estimate: Estimate, grouped: Sequence[Block], colours: dict[str, str]
) -> Chart:
    shown, details = _shown_blocks(grouped), _details(network, estimate)
    ranks = _ranks([block.joules for block in shown])
    bars = [_block_bar(block, estimate, colours, ranks[i]) for i, block in enumerate(shown)]
    largest = sorted((block for block in grouped if len(block.one) > 1), key=lambda block: -block.joules)
    inside = tuple(
        _inside(f"{key}-block-{i}", block, estimate, details, colours)
        for i, block in enumerate(largest[:MOST_INSIDE], 1)
    )
    cells = tuple(
        (
            block_name(b),
            str(b.count),
            str(len(b.one)),
            units.joules(b.joules),
            units.percent(share_of(b.joules, estimate.joules)),
        )
        for b in grouped
    )
    cut = "" if len(shown) == len(grouped) else f" The {SHOWN} most expensive blocks; the table has all."
    return Chart(
        f"{key}-layers",
        "Block by block, in the order in which they run",
        "Energy of each block in one iteration, forward and backward; equal blocks that follow each other are one bar. "
        "Colours are kinds of layers, as in the chart by kind; whiskers are 90 % intervals of single layers."
        f"{cut} {joules_note(estimate.meter)}",
        Bars(bars),
        Table(("block", ">blocks", ">layers in each", ">energy", ">share"), cells),
        full=True,
        orders=(("cost", "most expensive first"),),
        inside=(*inside, layers_chart(f"{key}-all", network, estimate, colours)),
    )


def _shown_blocks(grouped: Sequence[Block]) -> list[Block]:
    """All blocks, or the most expensive ones and the layers of all others as one."""
    *found, step = grouped
    if len(found) <= MOST_BARS:
        return [*found, step]
    kept = set(sorted(range(len(found)), key=lambda i: -found[i].joules)[:SHOWN])
    others = tuple(share for i, block in enumerate(found) if i not in kept for share in block.layers)
    rest = Block(f"({units.counted(len(found) - SHOWN, 'other block')})", 1, others)
    return [*(found[i] for i in sorted(kept)), rest, step]


def block_name(block: Block) -> str:
    return called(block.one[0]) if len(block.layers) == 1 else placed(block.name)


def _block_bar(block: Block, estimate: Estimate, colours: dict[str, str], rank: int) -> Bar:
    share = share_of(block.joules, estimate.joules)
    each = units.counted(len(block.one), "layer") if len(block.one) > 1 else kind_name(block.one[0].kind)
    detail = (
        "" if block.kind == "step" or not block.name else f"{block.count} {TIMES} {each}" if block.count > 1 else each
    )
    colour = colours.get(block.kind, "rest")
    stddev = block.stddev if len(block.layers) == 1 else 0.0  # of several layers only an upper bound is known
    bar = _energy_bar(block_name(block), detail, block.joules, stddev, share, colour, False, rank)
    parts: dict[str, float] = {}
    for layer in block.layers:
        of_kind = colours.get(layer.kind, "rest")
        parts[of_kind] = parts.get(of_kind, 0.0) + max(layer.joules, 0.0)
    order = sorted(parts.items(), key=lambda part: -part[1])
    return replace(bar, parts=tuple(order)) if len(order) > 1 else bar


def _inside(key: str, block: Block, estimate: Estimate, details: dict[int, str], colours: dict[str, str]) -> Chart:
    """The layers of one of several equal blocks."""
    total, ranks = sum(share.joules for share in block.one), _ranks([share.joules for share in block.one])
    prefix = block.name.split("-")[0] + "." if block.count > 1 else block.name + "."
    rows = [
        _energy_bar(
            called(share).removeprefix(prefix),
            details.get(id(share), ""),
            share.joules,
            share.stddev,
            share_of(share.joules, total),
            colours.get(share.kind, "rest"),
            share.name in {*estimate.unprofiled, *estimate.extrapolated},
            ranks[i],
        )
        for i, share in enumerate(block.one)
    ]
    pale = " Pale bars: outside what was measured on this device." if any(row.hollow for row in rows) else ""
    of = f"each of {block.count} equal blocks" if block.count > 1 else units.counted(len(block.one), "layer")
    return Chart(
        key,
        f"Inside {placed(block.name)} ({of})",
        f"Energy of the layers of one block, and their shares of it.{pale} {joules_note(estimate.meter)}",
        Bars(rows),
        Table(("layer", ">energy and share of the block"), tuple((row.name, row.label) for row in rows)),
        full=True,
    )


def layers_chart(key: str, network: Network, estimate: Estimate, colours: dict[str, str]) -> Chart:
    shown, details = _shown_layers(estimate), _details(network, estimate)
    ranks = _ranks([share.joules for share in shown])
    uncertain = {*estimate.unprofiled, *estimate.extrapolated}
    rows = [
        _energy_bar(
            called(share),
            details.get(id(share), ""),
            share.joules,
            share.stddev,
            share_of(share.joules, estimate.joules),
            colours.get(share.kind, "rest"),
            share.name in uncertain,
            ranks[i],
        )
        for i, share in enumerate(shown)
    ]
    cut = "" if len(shown) == len(estimate.layers) else f" The {SHOWN} most expensive layers; the table has all."
    pale = " Pale bars: outside what was measured on this device." if uncertain else ""
    return Chart(
        f"{key}-layers",
        "Layer by layer, in the order in which they run",
        f"Energy of each layer in one iteration, forward and backward; whiskers are 90 % intervals.{cut}{pale} "
        f"{joules_note(estimate.meter)}",
        Bars(rows),
        _layers_table(estimate),
        full=True,
        orders=(("cost", "most expensive first"),),
    )


def _shown_layers(estimate: Estimate) -> list[LayerShare]:
    """All layers, or the most expensive ones and the others as one."""
    *layers, step = estimate.layers
    if len(layers) <= MOST_BARS:
        return [*layers, step]
    kept = set(sorted(range(len(layers)), key=lambda i: -layers[i].joules)[:SHOWN])
    others = [share.joules for i, share in enumerate(layers) if i not in kept]
    rest = LayerShare(f"({units.counted(len(others), 'other layer')})", "", sum(others), 0.0)
    return [*(layers[i] for i in sorted(kept)), rest, step]


def _ranks(values: Sequence[float]) -> list[int]:
    """The place of each value when the largest comes first."""
    order = sorted(range(len(values)), key=lambda i: -values[i])
    return [order.index(i) for i in range(len(values))]


def _energy_bar(
    name: str, detail: str, joules: float, stddev: float, share: float, colour: str, pale: bool, rank: int
) -> Bar:
    half = Z90 * stddev
    plus_minus = f" ± {units.joules(half)}" if half else ""
    full_name = f"{name} ({detail})" if detail else name
    return Bar(
        name,
        max(joules, 0.0),
        f"{units.joules(joules)}  {units.percent(share)}",
        f"{full_name}: {units.joules(joules)}{plus_minus}, {units.percent(share)}",
        detail,
        joules - half if half else None,
        joules + half if half else None,
        colour,
        (),
        pale,
        {"cost": rank},
    )


def _details(network: Network, estimate: Estimate) -> dict[int, str]:
    """The kind and channels of each layer, by the identity of its share."""
    return {id(share): _detail(layer) for share, layer in zip(estimate.layers, network.layers, strict=False)}


def _detail(layer: Layer) -> str:
    return f"{kind_name(layer.kind)} {layer.channels_in:,} → {layer.channels_out:,}"


def placed(name: str) -> str:
    """A name that is only a number is a place in a list of layers."""
    return f"layer {name}" if name.replace("-", "").isdigit() else name


def called(share: LayerShare) -> str:
    if share.kind == "step":
        return "step overhead"
    return placed(share.name) or kind_name(share.kind)


def _layers_table(estimate: Estimate) -> Table:
    notes = {
        **dict.fromkeys(estimate.extrapolated, "extrapolated"),
        **dict.fromkeys(estimate.unprofiled, "not profiled"),
    }
    rows = tuple(
        (
            called(share),
            kind_name(share.kind),
            units.joules(share.joules),
            f"± {units.joules(Z90 * share.stddev)}" if share.stddev else "",
            units.percent(share_of(share.joules, estimate.joules)),
            notes.get(share.name, ""),
        )
        for share in estimate.layers
    )
    return Table(("layer", "kind", ">energy", ">90 %", ">share", "note"), rows)
