"""The paper's layer kinds and variants.

A source's networks are parsed into an output layer, an input layer and hidden ones. A kind's channels lie between
bounds seen in these networks. Where one side is always the same multiple of the other (a norm, a projection to queries,
keys and values) only one of them is free.

Variants are: output alone, input + output, input + hidden + output. Layers are joined where one reads what the one
before it made. An output layer takes as many channels as it is given. An input layer that cannot feed a hidden one (its
images have another size) is left out: then the hidden layer reads a given tensor, and equation (2) has no input to
subtract.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ampere.core import Layer, Network
from ampere.core.kinds.kind import product
from ampere.core.kinds.recurrent import GATES
from ampere.core.wiring import operands, wire
from ampere.estimation.sequential import Kind, kind_of

Point = tuple[int, int]  # channels in and out

ALONG_A_LINE, ALONG_A_SIDE = 48, 12  # candidates of a kind with one free axis, and along each of two
STATEFUL = ("lstm", "gru", "rnn")


@dataclass(frozen=True)
class LayerKind:
    """One kind of layer: an example, and the channels that were seen of it."""

    example: Layer
    seen: frozenset[Point]

    @property
    def kind(self) -> Kind:
        return kind_of(self.example)

    @property
    def ins(self) -> tuple[int, int]:
        """Fewest and most channels in."""
        return min(a for a, _ in self.seen), max(a for a, _ in self.seen)

    @property
    def outs(self) -> tuple[int, int]:
        """Fewest and most channels out."""
        return min(b for _, b in self.seen), max(b for _, b in self.seen)

    @property
    def is_line(self) -> bool:
        """Whether one side is fixed, or tied to the other."""
        return min(len({a for a, _ in self.seen}), len({b for _, b in self.seen}), len(self._ratios)) == 1

    @property
    def _ratios(self) -> set[float]:
        return {b / a for a, b in self.seen}

    def bounds(self) -> list[Point]:
        """The points that profiling starts with: the corners of what was seen."""
        if self.is_line:
            return list(dict.fromkeys([min(self.seen), max(self.seen)]))
        return list(itertools.product(dict.fromkeys(self.ins), dict.fromkeys(self.outs)))

    def candidates(self) -> list[Point]:
        """The points that profiling chooses from."""
        if self.is_line:
            (a, b), (c, d) = min(self.seen), max(self.seen)
            shares = np.linspace(0.0, 1.0, ALONG_A_LINE)
            points = [self._near(a + s * (c - a), b + s * (d - b)) for s in shares]
        else:
            points = [
                self._near(a, b)
                for a, b in itertools.product(*(np.linspace(*e, ALONG_A_SIDE) for e in (self.ins, self.outs)))
            ]
        return list(dict.fromkeys(points))

    def _near(self, channels_in: float, channels_out: float) -> Point:
        """The nearest point with whole channels; sides that are tied keep their ratio."""
        groups = max(1, int(self.example.config.get("groups", 1)))
        a = max(groups, round(channels_in / groups) * groups)
        if self.is_line and len(self._ratios) == 1:
            return a, max(1, round(a * next(iter(self._ratios))))
        return a, max(groups, round(channels_out / groups) * groups)

    def at(self, point: Point) -> Layer:
        """The layer of this kind with these channels."""
        layer = self.example.with_channels(*point)
        if layer.kind != "scale":
            return layer
        values = round(self.example.config["values"] / self.example.channels_out * point[1])
        return replace(layer, config={**layer.config, "values": values})

    def reaching(self, channels_in: Iterable[int]) -> LayerKind:
        """The same kind, with bounds that include these channels in."""
        out = self.example.channels_out
        return replace(self, seen=self.seen | {(c, out) for c in channels_in})


@dataclass(frozen=True)
class LayerKinds:
    """The layer kinds of a source's networks."""

    output: LayerKind
    input: LayerKind | None
    hidden: tuple[LayerKind, ...]
    batch: int


def layer_kinds(networks: Sequence[Network]) -> LayerKinds:
    """The kinds of all layers that can be built from their description, the most frequent hidden ones first."""
    seen: dict[Kind, set[Point]] = {}
    examples: dict[Kind, Layer] = {}
    times: dict[Kind, int] = {}
    for network in networks:
        for layer in _described(network):
            kind = kind_of(layer)
            examples.setdefault(kind, layer)
            seen.setdefault(kind, set()).add((layer.channels_in, layer.channels_out))
            times[kind] = times.get(kind, 0) + 1
    found = {kind: LayerKind(examples[kind], frozenset(seen[kind])) for kind in examples}
    first, last = (kind_of(_described(networks[0])[place]) for place in (0, -1))
    hidden = sorted((k for k in found if k not in (first, last)), key=lambda kind: -times[kind])
    entrance = found[first] if first != last else None
    return LayerKinds(found[last], entrance, tuple(found[k] for k in hidden), networks[0].batch)


def _described(network: Network) -> list[Layer]:
    return [layer for layer in network.layers if layer.kind != "opaque"]


def variant(kinds: LayerKinds, kind: LayerKind, point: Point) -> tuple[Layer, ...]:
    """The layers of the variant that exposes a kind at these channels."""
    layer = kind.at(point)
    if kind.kind == kinds.output.kind:
        return (layer,)
    if kinds.input is not None and kind.kind != kinds.input.kind:
        entrance = _feeding(kinds.input, layer)
        if entrance is not None:
            return (entrance, layer, _fed(kinds.output, (entrance, layer)))
    return (layer, _fed(kinds.output, (layer,)))


def with_reach(kinds: LayerKinds) -> LayerKinds:
    """The same kinds, with output bounds that include the channels that variants need."""
    others = [kind for kind in (kinds.input, *kinds.hidden) if kind is not None]
    needed = {variant(kinds, kind, point)[-1].channels_in for kind in others for point in kind.bounds()}
    return LayerKinds(kinds.output.reaching(needed), kinds.input, kinds.hidden, kinds.batch)


def joined(layers: Sequence[Layer]) -> bool:
    """Whether each layer reads something that an earlier one made."""
    wiring = wire(Network(tuple(layers), 1))
    fresh = {tensor.value for tensor in wiring.fresh}
    readers = [node for node in wiring.nodes if node.trailing is None][1:]
    return all(node.reads[0].value not in fresh for node in readers)


def _feeding(entrance: LayerKind, layer: Layer) -> Layer | None:
    """The input layer with as many channels as the layer reads; None where they do not fit."""
    low, high = entrance.outs
    wanted = layer.channels_in
    if layer.kind == "linear":  # it may read all positions of every channel
        per_channel = _values_after((entrance.example,), layer) / entrance.example.channels_out
        wanted = round(product(operands(layer)[0].shape) / per_channel)
    if not low <= wanted <= high:
        return None
    fed = entrance.at((entrance.example.channels_in, wanted))
    return fed if joined((fed, layer)) else None


def _fed(output: LayerKind, before: tuple[Layer, ...]) -> Layer:
    """The output layer that reads everything before it; of a sequence's states only the last."""
    out, last = output.example.channels_out, before[-1]
    per_channel = product(operands(output.example)[0].shape) / output.example.channels_in
    channels = max(1, round(_values_after(before, output.example) / per_channel))
    if last.kind in GATES:
        channels = last.channels_out * int(last.config.get("directions", 1))
    fitted = output.at((channels, out))
    return fitted if joined((*before, fitted)) else output.at((output.ins[0], out))


def _values_after(layers: tuple[Layer, ...], following: Layer) -> int:
    """How many values the layers leave to the one that follows."""
    wiring = wire(Network((*layers, following), 1))
    own = [node for node in wiring.nodes if node.layer is layers[-1]]
    return product(own[-1].shape)
