"""A layer as the operations that a device is told to do, one by one: products, and values to move.

A product multiplies m x k by k x n, `taps` times over (the places of a convolution's window). Its two gradients
are products of the same size with the roles of rows, inputs and outputs exchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ...network import Layer, work
from ...network.kinds.convolution import size_out
from ...network.kinds.kind import product
from ...network.kinds.recurrent import GATES

UPDATES = {"sgd": 3, "momentum": 5, "adam": 7, "adamw": 7}  # values read and written for each parameter
UNKNOWN_WIDTH = 64.0  # of the products inside a module that no table knows


class Kernel(NamedTuple):
    m: float = 0.0
    n: float = 0.0
    k: float = 0.0
    taps: float = 1.0
    values: float = 0.0  # read and written
    stage: str = "forward"  # or backward, or update
    repeats: float = 1.0
    rides: bool = False  # can be fused with the product before it


def kernels_of(layer: Layer, optimizer: str) -> Iterator[Kernel]:
    yield from PRODUCTS.get(layer.kind, _evenly)(layer)
    for tail in layer.tail:
        moved = Kernel(values=tail.values_in + tail.values_out, rides=tail.op == "elementwise")
        yield moved
        if tail.backward:
            yield moved._replace(stage="backward")
    asked = work(layer)
    if asked.parameter_tensors:
        each = UPDATES[optimizer] * asked.parameters / asked.parameter_tensors
        yield Kernel(values=each, stage="update", repeats=asked.parameter_tensors)


def _convolution(layer: Layer) -> Iterator[Kernel]:
    c: Any = layer.config
    groups = c["groups"] or layer.channels_in
    taps = product(c["kernel"])
    places_in, places_out = product(c["size_in"]), product(size_out(layer))
    places = places_in if layer.kind == "conv_transposed" else places_out
    cin, cout = layer.channels_in, layer.channels_out
    values = c["batch"] * (places_in * cin + places_out * cout) + taps * cin * cout / groups
    yield from _passes(layer, c["batch"] * places * groups, cout / groups, cin / groups, taps, values)


def _linear(layer: Layer) -> Iterator[Kernel]:
    rows = product(layer.config["lead"])
    values = rows * (layer.channels_in + layer.channels_out) + layer.channels_in * layer.channels_out
    yield from _passes(layer, rows, layer.channels_out, layer.channels_in, 1.0, values)


def _passes(layer: Layer, rows: float, n: float, k: float, taps: float, values: float) -> Iterator[Kernel]:
    yield Kernel(rows, n, k, taps, values)
    if layer.input_grad:
        yield Kernel(rows, k, n, taps, values, "backward")
    if layer.trainable:
        yield Kernel(rows, n, k, taps, values, "backward")


def _recurrent(layer: Layer) -> Iterator[Kernel]:
    """At every place of the sequence, all gates from what comes in and from the state."""
    yield from _evenly(layer, GATES[layer.kind] * layer.channels_out, layer.channels_in + layer.channels_out)


def _opaque(layer: Layer) -> Iterator[Kernel]:
    yield from _evenly(layer, UNKNOWN_WIDTH, UNKNOWN_WIDTH)


def _evenly(layer: Layer, n: float = 0.0, k: float = 0.0) -> Iterator[Kernel]:
    """All other kinds: what they ask for in all, divided among the operations that they start."""
    asked = work(layer)
    count = max(1.0, float(asked.launches))
    if not asked.flops and not asked.values:
        return
    n, k = n or float(layer.channels_out), k or float(layer.channels_in)
    rows = asked.flops / (2 * n * k * count)
    values = (asked.values + asked.weights) / count
    share = 0.5 if layer.backward else 0.0  # of the operations, those that run backward
    for stage, repeats in (("forward", count * (1 - share)), ("backward", count * share)):
        if repeats:
            yield Kernel(rows, n if rows else 0.0, k if rows else 0.0, 1.0, values, stage, repeats)


PRODUCTS: dict[str, Callable[[Layer], Iterator[Kernel]]] = {
    "conv": _convolution,
    "conv_grouped": _convolution,
    "conv_transposed": _convolution,
    "linear": _linear,
    **dict.fromkeys(GATES, _recurrent),
    "opaque": _opaque,
}
