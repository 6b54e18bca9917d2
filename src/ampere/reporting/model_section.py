"""One model on this device: what it costs, where the energy goes by kind, block and layer, and how certain that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ampere.core import Network, units
from ampere.core.setup import ALLOCATORS
from ampere.estimation.additive import Additive
from ampere.estimation.estimate import COVERS, Estimate, LayerShare
from ampere.estimation.estimator import Estimator
from ampere.estimation.grouping import Block, blocks
from ampere.estimation.variance import variance_shares

from .charts import Bar, Bars
from .layer_charts import MOST_BARS, block_name, blocks_chart, called, kinds_chart, layers_chart, placed, share_of
from .record import Chart, Section, Table
from .words import joules_note, kind_name

FEWER = 0.7  # of the layers: as many blocks make a chart by block worthwhile
PARTS_SHOWN, LEAST_PART = 8, 0.01  # of the variance
NAMES_SHOWN = 8
WIDE = 0.5  # of the estimate: an interval that is wider on either side is called so


@dataclass(frozen=True)
class Run:
    """The training that is planned: how long, and from which battery."""

    iterations: int | None = None
    battery_joules: float | None = None
    battery: str = ""


def model_section(
    key: str,
    network: Network,
    estimate: Estimate,
    estimator: Estimator,
    run: Run,
    colours: dict[str, str],
    group_by: str | None = None,
) -> Section:
    """`group_by` is block, layer, or None: by block where a network has too many layers for one chart."""
    charts = [kinds_chart(key, estimate, colours)]
    grouped = blocks(estimate)
    many = len(estimate.layers) > MOST_BARS and len(grouped) < FEWER * len(estimate.layers)
    by_block = many if group_by is None else group_by == "block"
    if by_block:
        charts.append(blocks_chart(key, network, estimate, grouped, colours))
    else:
        charts.append(layers_chart(key, network, estimate, colours))
    model, _ = estimator.of_joules
    if isinstance(model, Additive) and estimate.stddev > 0:
        charts.append(_uncertainty_chart(key, network, estimate, model, estimator.condition_uncertainty))
    words = (where_it_goes(estimate, grouped if by_block else ()), *_warning(estimate))
    facts = [*_certainty(estimate), ("assumes", ALLOCATORS[estimate.allocator]), ("covers", COVERS)]
    facts += [("note", note) for note in network.notes]
    title = f"Where the energy of {estimate.network or 'the network'} goes"
    return Section(key, title, words, figures(estimate, run, network.batch), tuple(charts), tuple(facts))


def figures(estimate: Estimate, run: Run, batch: int) -> tuple[tuple[str, str], ...]:
    low, high = estimate.interval
    scale, unit = units.joules_unit(estimate.joules)
    interval = f"90 % interval {units.three(low / scale)} to {units.three(high / scale)} {unit}"
    per_sample = f", {units.joules(estimate.joules / batch)} per sample" if batch > 1 else ""
    time = units.seconds(estimate.seconds)
    one = f"per training iteration of {units.counted(batch, 'sample')}, {time}{per_sample}\n{interval}"
    shown = [(units.joules(estimate.joules), one)]
    if run.iterations:
        n, joules = run.iterations, estimate.total_joules(run.iterations)
        total = f"{units.joules(low * n)} to {units.joules(high * n)}"
        time = units.seconds(estimate.seconds * n)
        shown.append(
            (
                units.joules(joules),
                f"for {units.counted(n, 'iteration')} ({units.watt_hours(joules)}, {time})\n90 % interval {total}",
            )
        )
        if run.battery_joules:
            least, most = (units.percent(edge * n / run.battery_joules) for edge in (low, high))
            share = units.percent(joules / run.battery_joules)
            shown.append((share, f"of a battery of {run.battery}\n90 % interval {least} to {most}"))
    elif run.battery_joules:
        shown.append((f"{int(run.battery_joules / estimate.joules):,}", f"iterations from a battery of {run.battery}"))
    return tuple(shown)


def where_it_goes(estimate: Estimate, grouped: Sequence[Block] = ()) -> str:
    """A sentence that names the fewest layers, or blocks, that take half of the energy."""
    things, parts = "layers", [(_with_kind(share), share.joules) for share in estimate.layers[:-1]]
    if grouped:
        things, parts = "blocks", [(block_name(block), block.joules) for block in grouped[:-1]]
    parts.sort(key=lambda part: -part[1])
    taken, count = 0.0, 0
    while count < len(parts) and taken < 0.5 * estimate.joules:
        taken, count = taken + parts[count][1], count + 1
    if not count:
        return "All of the energy is the overhead of a step."
    some = ", ".join(name for name, _ in parts[:count][:3])
    more = f" and {count - 3} more" if count > 3 else ""
    takes = "takes" if count == 1 else "take"
    share = units.percent(taken / estimate.joules)
    return f"{count} of {len(parts)} {things} {takes} {share} of the energy: {some}{more}."


def _with_kind(share: LayerShare) -> str:
    return f"{called(share)} ({kind_name(share.kind)})" if share.name else called(share)


def _warning(estimate: Estimate) -> list[str]:
    if estimate.interval[1] - estimate.joules <= WIDE * estimate.joules:
        return []
    return [
        "The interval is wider than half of the estimate: this is a rough figure. "
        "`ampere profile` with this model and more --seconds narrows it."
    ]


def _certainty(estimate: Estimate) -> list[tuple[str, str]]:
    relative = units.percent((estimate.interval[1] - estimate.joules) / estimate.joules)
    facts = [("90 % interval", f"± {relative}")]
    if estimate.unprofiled:
        why = "no layer of this kind was measured; estimated from its arithmetic"
        facts.append(("not profiled", f"{_some(estimate.unprofiled)}: {why}"))
    if estimate.extrapolated:
        why = "far larger or smaller than any layer that was measured"
        facts.append(("extrapolated", f"{_some(estimate.extrapolated)}: {why}"))
    if not (estimate.unprofiled or estimate.extrapolated):
        facts.append(("within", "every layer lies within the kinds and sizes that were measured"))
    return facts


def _some(names: tuple[str, ...]) -> str:
    more = len(names) - NAMES_SHOWN
    return ", ".join(map(placed, names[:NAMES_SHOWN])) + (f" and {more} more" if more > 0 else "")


def _uncertainty_chart(key: str, network: Network, estimate: Estimate, model: Additive, condition: float) -> Chart:
    parts = _variance_parts(network, estimate, model, condition)
    total = sum(max(share, 0.0) for _, share in parts) or 1.0
    rows = []
    for name, share in parts:
        shown = f"{100 * share_of(share, total):.0f} %"
        rows.append(Bar(name, share_of(share, total), shown, f"{name}: {shown} of the variance", colour="four"))
    clipped = " Parts that balance others count as 0." if any(share < 0 for _, share in parts) else ""
    return Chart(
        f"{key}-uncertainty",
        "Where the uncertainty comes from",
        "Shares of the variance of the total. Measuring more networks like this one makes the layers' part smaller; "
        f"the noise of measuring stays.{clipped} {joules_note(estimate.meter)}",
        Bars(rows),
        Table(("part", ">share of variance"), tuple((b.name, b.label) for b in rows)),
        full=True,
    )


def _variance_parts(network: Network, estimate: Estimate, model: Additive, condition: float) -> list[tuple[str, float]]:
    """Each part's covariance with the total, as a share of its variance; a part that balances others is negative."""
    found = variance_shares(model, network, estimate.allocator == "system")
    busy = (condition * estimate.joules / estimate.stddev) ** 2
    names: dict[object, list[str]] = {}
    for layer in network.layers:
        names.setdefault(layer, []).append(placed(layer.name) or kind_name(layer.kind))
    layers = [(_together(names[layer]), share) for layer, share in found.layers.items()]
    layers.sort(key=lambda item: -item[1])
    shown = [(name, share) for name, share in layers[:PARTS_SHOWN] if share >= LEAST_PART]
    rest = layers[len(shown) :]
    if len(rest) == 1:
        shown, rest = layers, []
    if rest:
        name = f"({units.counted(len(rest), 'other layer')})" if shown else "all layers"
        shown.append((name, sum(share for _, share in rest)))
    shown += [
        ("network as a whole", found.whole),
        ("step overhead", found.step),
        ("noise of measuring", found.measuring),
    ]
    shown = [(name, share * (1 - busy)) for name, share in shown]
    return [*shown, ("how busy the device was", busy)] if busy >= LEAST_PART else shown


def _together(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} like it"
