"""What was learnt of each kind of layer: its surface over channels, at the configuration that was measured most."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from ampere.core import Layer, Network, units
from ampere.core.kinds import group
from ampere.estimation.estimate import Z90, Estimator, LayerShare
from ampere.reporting import curve, heatmap, naming
from ampere.storage.profile import Observation, Profile

from .origin import beneath
from .record import Chart, Section, Table
from .scales import tick, whole

FEWEST = 3  # places of a surface that must have been seen for it to be shown
CELLS, FINEST, STEPS = 2_600, 40, 64  # cells of all heat maps together, of one side, and of a line
NO_SURFACE = ("glue", "opaque")
Place = tuple[int, int]


@dataclass(frozen=True)
class Known:
    """One configuration of a kind: a layer that stands for it, and the channels at which it was trained."""

    layer: Layer
    batch: int
    alone: dict[Place, Observation]  # trained by itself, with a loss
    within: frozenset[Place]  # as a part of something larger

    @property
    def places(self) -> list[Place]:
        return sorted({*self.alone, *self.within})

    @property
    def is_a_surface(self) -> bool:
        """Both numbers of channels were seen to change, and not only together."""
        apart = any(i != o for i, o in self.places)
        return apart and len({i for i, _ in self.places}) > 1 and len({o for _, o in self.places}) > 1


def surfaces_section(profile: Profile, estimator: Estimator) -> Section | None:
    found = sorted(most_measured(profile).items())
    side = min(FINEST, int((CELLS / max(1, sum(k.is_a_surface for _, k in found))) ** 0.5))
    charts = tuple(_chart(name, known, estimator, side) for name, known in found)
    if not charts:
        return None
    words = ("What each kind of layer costs, at the configuration that was measured most.",)
    return Section("surfaces", "What was learnt of each kind of layer", words, charts=charts)


def most_measured(profile: Profile) -> dict[str, Known]:
    seen: dict[tuple[str, object], list[tuple[Layer, Observation]]] = defaultdict(list)
    for observation in profile.observations:
        for layer in observation.network.layers:
            seen[group(layer), tuple(sorted(layer.config.items()))].append((layer, observation))
    best: dict[str, Known] = {}
    for (name, _), found in seen.items():
        known = _known(found)
        if (
            len(known.places) >= FEWEST
            and name not in NO_SURFACE
            and (name not in best or len(known.places) > len(best[name].places))
        ):
            best[name] = known
    return best


def _known(found: list[tuple[Layer, Observation]]) -> Known:
    function, _ = Counter(layer.function for layer, _ in found).most_common(1)[0]
    standing, observation = next((layer, o) for layer, o in found if layer.function == function)
    alone = {(layer.channels_in, layer.channels_out): o for layer, o in found if o.purpose == "layer"}
    within = frozenset((layer.channels_in, layer.channels_out) for layer, o in found if o.purpose != "layer")
    return Known(standing, observation.network.batch, alone, within - alone.keys())


def _chart(name: str, known: Known, estimator: Estimator, side: int) -> Chart:
    title = f"{naming.kind(name).capitalize()}: {naming.configuration(known.layer)}"
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


def _told(known: Known, estimator: Estimator) -> Iterator[tuple[Place, str, tuple[str, ...]]]:
    """Each place that was seen, in words and as a row of a table."""
    for place in known.places:
        learnt = units.joules(_share(estimator, known, place).joules)
        how = "trained within a network"
        if place in known.alone:
            how = f"trained alone: {units.joules(known.alone[place].measurement.joules)} with its step and loss"
        tip = f"{place[0]:,} → {place[1]:,} channels: {learnt} learnt; {how}"
        yield place, tip, (whole(place[0]), whole(place[1]), learnt, how)


def _heatmap(name: str, title: str, known: Known, estimator: Estimator, side: int) -> Chart:
    told = list(_told(known, estimator))
    xs, ys = _even({i for i, _ in known.places}, side), _even({o for _, o in known.places}, side)
    values = [[_share(estimator, known, (x, y)).joules for x in xs] for y in ys]
    seen = [heatmap.Seen(*place, tip, place in known.alone) for place, tip, _ in told]
    surface = heatmap.Surface(xs, ys, values, seen)
    scale, unit = units.joules_unit(surface.bounds[1] / 3)
    return Chart(
        f"surface-{name}",
        title,
        "Colour: what the layer is learnt to cost in a training step. White points were trained alone, black ones as "
        f"a part of a network. {beneath(estimator.meter)}",
        lambda width: heatmap.draw(surface, width, unit, lambda v: tick(v / scale)),
        Table((">channels in", ">channels out", ">learnt", "how it was seen"), tuple(row for *_, row in told)),
    )


def _height(place: Place, known: Known, estimator: Estimator) -> float:
    """The line, and by how much the measurement was dearer than what the line makes of it with its step and loss."""
    if place not in known.alone:
        return 0.0
    seen = known.alone[place]
    expected = estimator.estimate(seen.network, seen.measurement.allocator, 1.0).joules
    return max(_share(estimator, known, place).joules + seen.measurement.joules - expected, 0.0)


def _curve(name: str, title: str, known: Known, estimator: Estimator) -> Chart:
    told = list(_told(known, estimator))
    ins, outs = {i for i, _ in known.places}, {o for _, o in known.places}
    both, over_in = ins == outs, len(ins) > 1
    xs = _even(ins if over_in else outs, STEPS)
    shares = [_share(estimator, known, (x, x) if both else (x, min(outs)) if over_in else (min(ins), x)) for x in xs]
    seen = [
        heatmap.Seen(p[0] if over_in else p[1], _height(p, known, estimator), tip, p in known.alone)
        for p, tip, _ in told
    ]
    half = [Z90 * s.stddev for s in shares]
    fixed = "channels" if both else f"channels in; {min(outs):,} out" if over_in else f"channels out; {min(ins):,} in"
    line = curve.Curve(
        xs,
        [s.joules for s in shares],
        [s.joules - h for s, h in zip(shares, half, strict=True)],
        [s.joules + h for s, h in zip(shares, half, strict=True)],
        seen,
        fixed,
    )
    scale, unit = units.joules_unit(max(line.highs))
    return Chart(
        f"surface-{name}",
        title,
        "Line: what the layer is learnt to cost in a training step, with its 90 % band. Short strokes: sizes that were "
        f"trained within networks; points: alone, less the step and the loss. {beneath(estimator.meter)}",
        lambda width: curve.draw(line, width, unit, lambda v: tick(v / scale)),
        Table((">channels in", ">channels out", ">learnt", "how it was seen"), tuple(row for *_, row in told)),
    )
