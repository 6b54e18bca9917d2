"""The paper's kinds of units, and the variants that expose them.

A source's networks are parsed into an output unit, an input unit and hidden ones. A kind's channels lie between 1 and
the most that these networks have. Where one side is always the same multiple of the other (a residual block without a
convolution in its shortcut, an encoder layer) only one of them is free.

Variants are: output alone, input + output, input + hidden + output. An output unit takes as many channels as it is
given. Where a hidden unit reads images of another size than the input unit makes, the variant begins with an input unit
of that size, which is a kind of its own (`input_sizes`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm

import numpy as np

from ampere.core import Layer, Network
from ampere.core.kinds.kind import product
from ampere.core.kinds.recurrent import GATES
from ampere.core.wiring import operands, wire
from ampere.estimation.units import FIXED, Kind, Tie, Ties, Unit, common_ties, kind_of, main_of, units_of

from .input_sizes import with_places

Point = tuple[int, int]  # channels in and out

ALONG_A_LINE, ALONG_A_SIDE = 48, 12  # candidates of a kind with one free axis, and along each of two


@dataclass(frozen=True)
class UnitKind:
    """One kind of unit: an example, the channels that were seen of it, and how its widths follow from these."""

    example: Unit
    seen: frozenset[Point]
    ties: Ties

    @property
    def kind(self) -> Kind:
        return self.example.kind

    @cached_property
    def most(self) -> Point:
        """Most channels in and out."""
        return max(a for a, _ in self.seen), max(b for _, b in self.seen)

    @cached_property
    def least(self) -> Point:
        """Fewest channels in and out: 1, or as few as every width can be divided into; fixed ones are as they are."""
        fixed_in, fixed_out = (len({point[side] for point in self.seen}) == 1 for side in (0, 1))
        a = self.most[0] if fixed_in else self._steps[0]
        return a, self.most[1] if fixed_out else self._steps[1]

    @cached_property
    def is_line(self) -> bool:
        """Whether one side is fixed, or tied to the other."""
        return self._ratio is not None or any(low == high for low, high in zip(self.least, self.most, strict=True))

    @cached_property
    def _ratio(self) -> Fraction | None:
        ratios = {Fraction(b, a) for a, b in self.seen}
        return next(iter(ratios)) if len(ratios) == 1 and len(self.seen) > 1 else None

    @cached_property
    def _chosen(self) -> tuple[Tie, ...]:
        """One tie for each width: the simplest that holds in all networks, or what holds in the example."""
        return tuple(
            min(known or own, key=lambda tie: (tie[0] == FIXED, tie[1] != 1, tie[0] == "in", tie[1]))
            for known, own in zip(self.ties, self.example.ties, strict=True)
        )

    @cached_property
    def _steps(self) -> Point:
        """What channels in and out must be multiples of, so that every width inside is whole and fits its groups."""
        needed = {"in": 1, "out": 1, FIXED: 1}
        groups = [max(1, int(layer.config.get("groups") or 1)) for layer in self.example.layers for _ in range(2)]
        for (end, factor), parts in zip(self._chosen, groups, strict=True):
            if end != FIXED:
                needed[end] = lcm(needed[end], _multiple(factor, parts))
        if self._ratio is None:
            return needed["in"], needed["out"]
        a = lcm(needed["in"], _multiple(self._ratio, needed["out"]))
        return a, int(a * self._ratio)

    def bounds(self) -> list[Point]:
        """The points that profiling starts with: the corners."""
        if self._ratio is not None:
            return list(dict.fromkeys([self.least, self.most]))
        (a, b), (c, d) = self.least, self.most
        return list(itertools.product(dict.fromkeys((a, c)), dict.fromkeys((b, d))))

    def candidates(self) -> list[Point]:
        """The points that profiling chooses from."""
        (a, b), (c, d) = self.least, self.most
        if self.is_line:
            shares = np.linspace(0.0, 1.0, ALONG_A_LINE)
            points = [self._near(a + s * (c - a), b + s * (d - b)) for s in shares]
        else:
            sides = np.linspace(a, c, ALONG_A_SIDE), np.linspace(b, d, ALONG_A_SIDE)
            points = [self._near(x, y) for x, y in itertools.product(*sides)]
        return list(dict.fromkeys(points))

    def _near(self, channels_in: float, channels_out: float) -> Point:
        """The nearest point that a unit can have."""
        a, b = (
            most if least == most else max(step, round(wanted / step) * step)
            for wanted, step, least, most in zip(
                (channels_in, channels_out), self._steps, self.least, self.most, strict=True
            )
        )
        return (a, b) if self._ratio is None else (a, int(a * self._ratio))

    def at(self, point: Point) -> Unit:
        """The unit of this kind with these channels."""
        ends = {"in": point[0], "out": point[1], FIXED: 1}
        widths = iter([max(1, round(factor * ends[end])) for end, factor in self._chosen])
        groups = tuple(
            tuple(_resized(layer, next(widths), next(widths)) for layer in group) for group in self.example.groups
        )
        return replace(self.example, groups=groups)

    def reaching(self, points: Iterable[Point]) -> UnitKind:
        """The same kind, with bounds that include these channels."""
        return replace(self, seen=self.seen | frozenset(points))


def _multiple(factor: Fraction, parts: int) -> int:
    """The smallest number whose product with the factor is a multiple of the parts."""
    whole = factor.denominator * parts
    return whole // gcd(factor.numerator, whole)


def _resized(layer: Layer, channels_in: int, channels_out: int) -> Layer:
    if layer.kind == "nonparametric":
        return layer
    resized = layer.with_channels(channels_in, channels_out)
    if layer.kind != "scale":
        return resized
    values = round(layer.config["values"] / layer.channels_out * channels_out)
    return replace(resized, config={**layer.config, "values": values})


@dataclass(frozen=True)
class UnitKinds:
    """The kinds of units of a source's networks."""

    output: UnitKind
    inputs: tuple[UnitKind, ...]  # the networks' own first, then those of other sizes that hidden units need
    hidden: tuple[UnitKind, ...]
    batch: int

    @property
    def in_order(self) -> list[UnitKind]:
        """All kinds in the order of subtraction: output, inputs, hidden ones."""
        return [self.output, *self.inputs, *self.hidden]

    def before(self, kind: UnitKind, point: Point) -> tuple[Unit, ...]:
        """What comes before the output in the variant of an input or a hidden kind: the input, and the hidden unit."""
        unit = kind.at(point)
        is_input = kind.kind in {each.kind for each in self.inputs}
        entrance = None if is_input else self.feeding(unit)
        return (unit,) if entrance is None else (entrance, unit)

    def feeding(self, hidden: Unit) -> Unit | None:
        """The input unit that makes what a hidden one reads, in another image size where it must; None without one."""
        if not self.inputs:
            return None
        own, reader = self.inputs[0], hidden.layers[0]
        (channels_in, channels_out), wanted = own.example.channels, operands(reader)[0].shape
        fed = own.at((channels_in, hidden.channels[0]))
        if _values_after(fed.layers, reader) == product(wanted):
            return fed
        resized = with_places(fed, _places(fed, wanted, hidden.channels[0]))
        reshaped = own.at((channels_in, channels_out * product(wanted) // _values_after(own.example.layers, reader)))
        for unit in (resized, reshaped, fed):  # of a sequence only the last states may be read
            if unit is not None and joined(layers_of((unit, hidden))):
                return unit
        return None


def _places(entrance: Unit, shape: Sequence[int], channels: int) -> tuple[int, ...]:
    """The image size that is read: that of images, or for other values as many places a channel as there are."""
    sides = len(main_of(entrance.groups[0]).config.get("size_in", ()))
    if len(shape) == 2 + sides and shape[1] == channels:
        return tuple(shape[2:])
    edge = round((product(tuple(shape[1:])) / channels) ** (1 / max(1, sides)))
    return (edge,) * sides


def unit_kinds(networks: Sequence[Network]) -> UnitKinds | None:
    """The kinds of all units that can be built from their description, the most frequent hidden ones first.

    The output reaches as far as variants need it, and there is an input for every hidden kind that can have one.
    """
    ties = {kind: common_ties(blocks) for kind, blocks in _by_kind(networks, lambda _: True).items()}
    tied = {kind for kind, widths in ties.items() if all(widths)}
    kinds = _kinds(networks, tied)
    if kinds is None:
        return None
    fed = {kind.kind for kind in kinds.hidden if all(kinds.feeding(kind.at(point)) for point in kind.bounds())}
    return (
        kinds
        if all(len(kind.example.groups) == 1 or kind.kind in fed for kind in kinds.hidden)
        else _kinds(networks, fed)
    )


def _kinds(networks: Sequence[Network], whole: Collection[Kind]) -> UnitKinds | None:
    """The kinds where only these blocks are not cut into their groups."""
    found = _by_kind(networks, lambda block: block.kind in whole)
    seen: dict[Kind, set[Point]] = {}  # by kind without trailing operations, which change nothing about channels
    for units in found.values():
        seen.setdefault(_without_trailing(units[0]), set()).update(unit.channels for unit in units)
    kinds = {
        kind: UnitKind(units[0], frozenset(seen[_without_trailing(units[0])]), common_ties(units))
        for kind, units in found.items()
    }
    if not (own := units_of(_described(networks[0]))):
        return None  # nothing but modules that are known by their code only
    *others, output = (unit.kind for unit in own)
    entrance = [kinds[others[0]]] if others else []
    hidden = sorted((k for k in kinds if k != output and k not in others[:1]), key=lambda kind: -len(found[kind]))
    return _with_reach(kinds[output], entrance, [kinds[kind] for kind in hidden], networks[0].batch)


def _by_kind(networks: Sequence[Network], whole: Callable[[Unit], bool]) -> dict[Kind, list[Unit]]:
    found: dict[Kind, list[Unit]] = {}
    for network in networks:
        for unit in units_of(_described(network), whole):
            found.setdefault(unit.kind, []).append(unit)
    return found


def _without_trailing(unit: Unit) -> Kind:
    return (unit.output, *(kind_of(replace(layer, trailing=())) for layer in unit.layers))


def _described(network: Network) -> Network:
    return replace(network, layers=tuple(layer for layer in network.layers if layer.kind != "opaque"))


def _with_reach(output: UnitKind, entrance: list[UnitKind], hidden: list[UnitKind], batch: int) -> UnitKinds:
    kinds = UnitKinds(output, tuple(entrance), tuple(hidden), batch)
    needed: dict[Kind, list[Unit]] = {}
    for kind in hidden:
        for point in kind.bounds():
            if (unit := kinds.feeding(kind.at(point))) is not None:
                needed.setdefault(unit.kind, []).append(unit)
    own = {kind.kind: kind for kind in entrance}
    inputs = list(entrance)
    for key, units in needed.items():
        points = frozenset(unit.channels for unit in units)
        if key in own:
            inputs = [each.reaching(points) if each.kind == key else each for each in inputs]
        else:
            inputs.append(UnitKind(units[0], points, entrance[0].ties))
    kinds = replace(kinds, inputs=tuple(inputs))
    before = [kinds.before(kind, point) for kind in (*inputs, *hidden) for point in kind.bounds()]
    return replace(kinds, output=output.reaching(_fed(output, units).channels for units in before))


def variant(kinds: UnitKinds, kind: UnitKind, point: Point) -> tuple[Unit, ...]:
    """The units of the variant that exposes a kind at these channels."""
    if kind.example.output:
        return (kind.at(point),)
    before = kinds.before(kind, point)
    return (*before, _fed(kinds.output, before))


def layers_of(units: Iterable[Unit]) -> tuple[Layer, ...]:
    return tuple(layer for unit in units for layer in unit.layers)


def joined(layers: Sequence[Layer]) -> bool:
    """Whether each layer reads something that an earlier one made."""
    wiring = wire(Network(tuple(layers), 1))
    fresh = {tensor.value for tensor in wiring.fresh}
    readers = [node for node in wiring.nodes if node.trailing is None][1:]
    return all(node.reads[0].value not in fresh for node in readers)


def _fed(output: UnitKind, before: tuple[Unit, ...]) -> Unit:
    """The output unit that reads everything before it; of a sequence's states only the last."""
    out, last = output.example.channels[1], main_of(before[-1].groups[-1])
    reader = output.example.layers[0]
    per_channel = product(operands(reader)[0].shape) / output.example.channels[0]
    channels = max(1, round(_values_after(layers_of(before), reader) / per_channel))
    if last.kind in GATES:
        channels = last.channels_out * int(last.config.get("directions", 1))
    fitted = output.at((channels, out))
    return fitted if joined(layers_of((*before, fitted))) else output.at((output.least[0], out))


def _values_after(layers: tuple[Layer, ...], following: Layer) -> int:
    """How many values the layers leave to the one that follows."""
    wiring = wire(Network((*layers, following), 1))
    own = [node for node in wiring.nodes if node.layer is layers[-1]]
    return product(own[-1].shape)
