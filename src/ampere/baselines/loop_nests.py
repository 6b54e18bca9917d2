"""The matrix products of a training step as loop nests: forward, and the two gradients of each product.

B places of a batch   G groups   K output channels   C input channels   OY, OX output image   FY, FX kernel

forward             O[b g k oy ox] += W[g k c fy fx]  I[b g c iy ix]        iy = stride oy + dilation fy
gradient of input   the same, with K and C exchanged: as many multiplications, over as many places
gradient of weight  O[g k c fy fx] += W[b g k oy ox]  I[b g c iy ix]        W is the gradient of the output here

Dimensions of a volume beyond two are folded into B (places) and C (kernel). Layers without a product have no nest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ampere.core import Layer
from ampere.core.kinds.convolution import size_out
from ampere.core.kinds.kind import product
from ampere.core.kinds.recurrent import GATES


@dataclass(frozen=True)
class LoopNest:
    """One product: how often each of its loops runs."""

    B: int
    K: int
    C: int
    G: int = 1
    OY: int = 1
    OX: int = 1
    FY: int = 1
    FX: int = 1
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    of_weights: bool = False  # the gradient of the weights: its result has the loops of a kernel

    @property
    def multiplications(self) -> int:
        return product((self.B, self.K, self.C, self.G, self.OY, self.OX, self.FY, self.FX))

    def exchanged(self) -> LoopNest:
        return replace(self, K=self.C, C=self.K)

    def weights(self) -> LoopNest:
        return replace(self, of_weights=True)


@lru_cache(maxsize=65536)
def loop_nests(layer: Layer) -> tuple[tuple[LoopNest, int], ...]:
    """Each nest of a layer and how often a step runs it."""
    return tuple(_nests(layer))


def _nests(layer: Layer) -> Iterator[tuple[LoopNest, int]]:
    c: Any = layer.config
    cin, cout = layer.channels_in, layer.channels_out
    if layer.kind in ("conv", "conv_grouped"):
        yield from _passes(_convolution(layer, size_out(layer)), layer.input_grad, layer.trainable)
    elif layer.kind == "conv_transposed":  # forward is the gradient of a convolution's input
        nest = _convolution(layer, c["size_in"])
        yield from _passes(nest, layer.input_grad, layer.trainable)
    elif layer.kind == "linear":
        yield from _passes(LoopNest(product(c["lead"]), cout, cin), layer.input_grad, layer.trainable)
    elif layer.kind == "matmul":
        both = layer.input_grad and c.get("gradients", 2) == 2
        yield from _passes(LoopNest(c["rows"], cout, cin, G=c["batch"]), layer.input_grad, both)
    elif layer.kind == "attention":
        heads = c["batch"] * c["heads"]
        for nest in (
            LoopNest(c["queries"], c["keys"], cin, G=heads),
            LoopNest(c["queries"], cout, c["keys"], G=heads),
        ):
            yield from _passes(nest, layer.input_grad, layer.input_grad)
    elif layer.kind in GATES:
        yield from _recurrent(layer)


def _passes(nest: LoopNest, input_grad: bool, weight_grad: bool, times: int = 1) -> Iterator[tuple[LoopNest, int]]:
    yield nest, times
    if input_grad:
        yield nest.exchanged(), times
    if weight_grad:
        yield nest.weights(), times


def _convolution(layer: Layer, places: tuple[int, ...]) -> LoopNest:
    c: Any = layer.config
    groups = c["groups"] or layer.channels_in
    *deep, height, width = (1, *places) if len(places) == 1 else places
    *deep_kernel, kernel_y, kernel_x = (1, *c["kernel"]) if len(places) == 1 else c["kernel"]
    return LoopNest(
        c["batch"] * product(tuple(deep)),
        max(1, layer.channels_out // groups),
        max(1, layer.channels_in // groups) * product(tuple(deep_kernel)),
        groups,
        height,
        width,
        kernel_y,
        kernel_x,
        (1, *c["stride"])[-2:],
        (1, *c["dilation"])[-2:],
    )


def _recurrent(layer: Layer) -> Iterator[tuple[LoopNest, int]]:
    """Inputs of all time steps at once; states one time step after the other."""
    c: Any = layer.config
    gates, reads = GATES[layer.kind] * layer.channels_out, layer.channels_in
    for depth in range(c["layers"]):
        inputs = LoopNest(c["batch"] * c["length"], gates, reads)
        yield from _passes(inputs, layer.backward if depth else layer.input_grad, layer.trainable, c["directions"])
        state = LoopNest(c["batch"], gates, layer.channels_out)
        yield from _passes(state, False, layer.trainable, c["directions"] * c["length"])
        if layer.backward:  # the first state gets a gradient only where one is asked for
            yield state.exchanged(), c["directions"] * (c["length"] - 1 + bool(c.get("state_grad")))
        reads = layer.channels_out * c["directions"]
