"""What was learnt of each kind of layer: its cost over channels, at the configuration that was measured most."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ampere.core import Layer, Network, units
from ampere.core.kinds import group, kind_of_group
from ampere.estimation.estimate import LayerShare
from ampere.estimation.estimator import Estimator
from ampere.estimation.interval import interval90
from ampere.estimation.normalization import NormalizedCost

from .charts import Curve, Heatmap, Seen
from .record import Chart, Section, Table
from .words import configuration, joules_note, kind_name

FEWEST = 3  # measured places of a surface that is shown
CELLS, FINEST, STEPS = 2_600, 40, 64  # cells of all heat maps together, of one side, and of a line
COLUMNS = (">channels in", ">channels out", ">learnt", "how it was measured")
Place = tuple[int, int]  # channels in, channels out


@dataclass(frozen=True)
class Known:
    """One configuration of a kind: a layer that represents it, and the channels at which it was trained."""

    layer: Layer
    batch: int
    alone: dict[Place, NormalizedCost]  # trained by itself, with a loss
    within: frozenset[Place]  # as a part of something larger

    @property
    def places(self) -> list[Place]:
        return sorted({*self.alone, *self.within})

    @property
    def is_a_surface(self) -> bool:
        """Whether both numbers of channels were varied, and not only together."""
        apart = any(i != o for i, o in self.places)
        return apart and len({i for i, _ in self.places}) > 1 and len({o for _, o in self.places}) > 1


def surfaces_section(estimator: Estimator) -> Section | None:
    found = sorted(most_measured(estimator.costs).items())
    side = min(FINEST, int((CELLS / max(1, sum(k.is_a_surface for _, k in found))) ** 0.5))
    charts = tuple(_chart(name, known, estimator, side) for name, known in found)
    if not charts:
        return None
    words = ("What each kind of layer costs, at the configuration that was measured most.",)
    return Section("surfaces", "What was learnt of each kind of layer", words, charts=charts)


def most_measured(costs: Sequence[NormalizedCost]) -> dict[str, Known]:
    """The configuration of each kind that was measured at most places."""
    seen: dict[tuple[str, object], list[tuple[Layer, NormalizedCost]]] = defaultdict(list)
    for cost in costs:
        for layer in cost.network.layers:
            seen[group(layer), tuple(sorted(layer.config.items()))].append((layer, cost))
    best: dict[str, Known] = {}
    for (name, _), found in seen.items():
        known = _known(found)
        more = name not in best or len(known.places) > len(best[name].places)
        if len(known.places) >= FEWEST and kind_of_group(name).has_surface and more:
            best[name] = known
    return best


def _known(found: list[tuple[Layer, NormalizedCost]]) -> Known:
    function, _ = Counter(layer.function for layer, _ in found).most_common(1)[0]
    layer, cost = next((layer, o) for layer, o in found if layer.function == function)
    alone = {(x.channels_in, x.channels_out): o for x, o in found if o.purpose == "layer"}
    within = frozenset((x.channels_in, x.channels_out) for x, o in found if o.purpose != "layer")
    return Known(layer, cost.network.batch, alone, within - alone.keys())


def _chart(name: str, known: Known, estimator: Estimator, side: int) -> Chart:
    title = f"{kind_name(name).capitalize()}: {configuration(known.layer)}"
    if known.is_a_surface:
        return _heatmap(name, title, known, estimator, side)
    return _curve(name, title, known, estimator)


def _share(estimator: Estimator, known: Known, place: Place) -> LayerShare:
    layer = known.layer.with_channels(*place)
    return estimator.estimate(Network((layer,), known.batch), "tuned", 1.0).layers[0]


def _even(values: set[int], most: int) -> list[int]:
    low, high = min(values), max(values)
    count = min(most, high - low + 1)
    return sorted({round(low + (high - low) * i / max(count - 1, 1)) for i in range(count)})


def _measured(known: Known, estimator: Estimator) -> Iterator[tuple[Place, str, tuple[str, ...]]]:
    """Each measured place, in words and as a row of a table."""
    for place in known.places:
        learnt = units.joules(_share(estimator, known, place).joules)
        how = "trained within a network"
        if place in known.alone:
            how = f"trained alone: {units.joules(known.alone[place].joules)} with its step and loss"
        tip = f"{place[0]:,} → {place[1]:,} channels: {learnt} learnt; {how}"
        yield place, tip, (f"{place[0]:,}", f"{place[1]:,}", learnt, how)


def _heatmap(name: str, title: str, known: Known, estimator: Estimator, side: int) -> Chart:
    measured = list(_measured(known, estimator))
    xs, ys = _even({i for i, _ in known.places}, side), _even({o for _, o in known.places}, side)
    values = [[_share(estimator, known, (x, y)).joules for x in xs] for y in ys]
    seen = [Seen(*place, tip, place in known.alone) for place, tip, _ in measured]
    return Chart(
        f"surface-{name}",
        title,
        "Colour: the learnt cost of the layer in a training step. White points were trained alone, black ones as a "
        f"part of a network. {joules_note(estimator.meter)}",
        Heatmap(xs, ys, values, seen),
        Table(COLUMNS, tuple(row for *_, row in measured)),
    )


def _curve(name: str, title: str, known: Known, estimator: Estimator) -> Chart:
    measured = list(_measured(known, estimator))
    ins, outs = {i for i, _ in known.places}, {o for _, o in known.places}
    both, over_in = ins == outs, len(ins) > 1
    xs = _even(ins if over_in else outs, STEPS)
    shares = [_share(estimator, known, (x, x) if both else (x, min(outs)) if over_in else (min(ins), x)) for x in xs]
    seen = [
        Seen(p[0] if over_in else p[1], _height(p, known, estimator), tip, p in known.alone) for p, tip, _ in measured
    ]
    label = "channels" if both else f"channels in; {min(outs):,} out" if over_in else f"channels out; {min(ins):,} in"
    intervals = [interval90(s.joules, s.stddev) for s in shares]
    curve = Curve(
        xs,
        [s.joules for s in shares],
        [low for low, _ in intervals],
        [high for _, high in intervals],
        seen,
        label,
    )
    return Chart(
        f"surface-{name}",
        title,
        "Line: the learnt cost of the layer in a training step, with its 90 % band. Short strokes: sizes that were "
        f"trained within networks; points: alone, less the step and the loss. {joules_note(estimator.meter)}",
        curve,
        Table(COLUMNS, tuple(row for *_, row in measured)),
    )


def _height(place: Place, known: Known, estimator: Estimator) -> float:
    """The curve, plus what the measurement costs more than its estimate with step and loss."""
    if place not in known.alone:
        return 0.0
    seen = known.alone[place]
    expected = estimator.estimate(seen.network, seen.allocator, 1.0).joules
    return max(_share(estimator, known, place).joules + seen.joules - expected, 0.0)
