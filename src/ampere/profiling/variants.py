"""The paper's variants: output alone, input + output, input + hidden + output.

Layers are joined where one reads what the one before it made. An output layer takes as many channels as it is given.
An input layer that cannot feed a hidden one (its pictures have another size) is left out: then the hidden layer
reads a tensor that is simply there, and equation (2) has nothing to subtract for an input.
"""

from __future__ import annotations

from collections.abc import Sequence

from ampere.network import Layer, Network
from ampere.network.kinds.kind import product
from ampere.worker.operands import operands
from ampere.worker.wiring import wire

from .layer_kinds import LayerKind, LayerKinds, Point

STATEFUL = ("lstm", "gru", "rnn")


def variant(kinds: LayerKinds, kind: LayerKind, point: Point) -> tuple[Layer, ...]:
    """The one that exposes a kind at these channels."""
    layer = kind.at(point)
    if kind.kind == kinds.output.kind:
        return (layer,)
    if kinds.input is not None and kind.kind != kinds.input.kind:
        entrance = _feeding(kinds.input, layer)
        if entrance is not None:
            return (entrance, layer, _fed(kinds.output, (entrance, layer)))
    return (layer, _fed(kinds.output, (layer,)))


def with_reach(kinds: LayerKinds) -> LayerKinds:
    """The output layer's bounds cover what variants ask of it."""
    others = [kind for kind in (kinds.input, *kinds.hidden) if kind is not None]
    asked = {variant(kinds, kind, point)[-1].channels_in for kind in others for point in kind.bounds()}
    return LayerKinds(kinds.output.reaching(asked), kinds.input, kinds.hidden, kinds.batch)


def joined(layers: Sequence[Layer]) -> bool:
    """Whether each layer reads something that an earlier one made."""
    wiring = wire(Network(tuple(layers), 1))
    fresh = {tensor.value for tensor in wiring.fresh}
    readers = [node for node in wiring.nodes if node.tail is None][1:]
    return all(node.reads[0].value not in fresh for node in readers)


def _feeding(entrance: LayerKind, layer: Layer) -> Layer | None:
    """The input layer with as many channels as the layer reads, where that makes them fit."""
    low, high = entrance.outs
    wanted = layer.channels_in
    if layer.kind == "linear":  # which may read all places of every channel
        per_channel = _values_after((entrance.example,), layer) / entrance.example.channels_out
        wanted = round(product(operands(layer)[0].shape) / per_channel)
    if not low <= wanted <= high:
        return None
    fed = entrance.at((entrance.example.channels_in, wanted))
    return fed if joined((fed, layer)) else None


def _fed(output: LayerKind, before: tuple[Layer, ...]) -> Layer:
    """The output layer that reads all that is before it; of a sequence's states only the last."""
    out, last = output.example.channels_out, before[-1]
    per_channel = product(operands(output.example)[0].shape) / output.example.channels_in
    channels = max(1, round(_values_after(before, output.example) / per_channel))
    if last.kind in STATEFUL:
        channels = last.channels_out * int(last.config.get("directions", 1))
    fitted = output.at((channels, out))
    return fitted if joined((*before, fitted)) else output.at((output.ins[0], out))


def _values_after(layers: tuple[Layer, ...], following: Layer) -> int:
    """How many values the layers leave to the one that follows."""
    wiring = wire(Network((*layers, following), 1))
    own = [node for node in wiring.nodes if node.layer is layers[-1]]
    return product(own[-1].shape)
