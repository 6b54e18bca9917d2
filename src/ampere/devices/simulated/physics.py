"""What a layer's operations cost on a simulated device: a roofline with rounded corners.

A layer is a list of kernels: products, and values to move. A product multiplies m x k by k x n, `taps` times (the
places of a convolution's window). Its two gradients are products of the same size with the roles of rows, inputs and
outputs exchanged.

    arithmetic = padded FLOPs / (peak x utilisation(m, n, k))      memory = missed / bandwidth + hit / cache bandwidth
    seconds    = the longest of launch, arithmetic and memory, which overlap
    joules     = static watts x seconds + volts^2 x per FLOP x padded FLOPs + per byte x bytes

On an accelerator the host launches operations into a queue. While a long one runs the host gets ahead, and launches of
short ones that follow hide behind it. With E the seconds of launches that would show one by one, and L the seconds by
which the host gets ahead:

    hidden     = queued x E x L / (E + L), less than either; each operation loses its share of E

Forward data misses the cache where that of one operation does not fit; backward data where all that the network keeps
for backward does not. So a layer costs a little more in a large network than in a small one.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ampere.core import Layer, Network, TrainingSetup, work
from ampere.core.kinds.convolution import size_out
from ampere.core.kinds.kind import product
from ampere.core.kinds.recurrent import GATES
from ampere.core.optimizers import OPTIMIZERS

from .parts import Part, Ridge

UNKNOWN_WIDTH = 64.0  # of the products inside an opaque module


class Kernel(NamedTuple):
    """One operation on the device: a product, or values to move."""

    m: float = 0.0
    n: float = 0.0
    k: float = 0.0
    taps: float = 1.0
    values: float = 0.0  # read and written
    stage: str = "forward"  # or backward, or update
    repeats: float = 1.0
    rides: bool = False  # can be fused with the product before it


def kernels_of(layer: Layer, optimizer: str) -> Iterator[Kernel]:
    """The operations of one training step of a layer."""
    yield from PRODUCTS.get(layer.kind, _evenly)(layer)
    for tail in layer.trailing:
        values = (tail.values_in + tail.values_out) * tail.weight
        moved = Kernel(values=values, rides=tail.op in ("elementwise", "transcendental"))
        yield moved
        if tail.backward:
            yield moved._replace(stage="backward")
    total = work(layer)
    if total.parameter_tensors:
        each = OPTIMIZERS[optimizer].values_moved * total.parameters / total.parameter_tensors
        yield Kernel(values=each, stage="update", repeats=total.parameter_tensors)


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
    """Kernels of a recurrent layer: at every position, all gates from the input and the state."""
    yield from _evenly(layer, GATES[layer.kind] * layer.channels_out, layer.channels_in + layer.channels_out)


def _opaque(layer: Layer) -> Iterator[Kernel]:
    yield from _evenly(layer, UNKNOWN_WIDTH, UNKNOWN_WIDTH)


def _evenly(layer: Layer, n: float = 0.0, k: float = 0.0) -> Iterator[Kernel]:
    """Kernels of any other kind: its total work, divided among the operations that it launches."""
    total = work(layer)
    count = max(1.0, float(total.launches))
    if not total.flops and not total.values:
        return
    n, k = n or float(layer.channels_out), k or float(layer.channels_in)
    rows = total.flops / (2 * n * k * count)
    values = (total.values + total.weights) / count
    share = 0.5 if layer.backward else 0.0  # of the operations that run backward
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


STAGES = ("forward", "backward", "update")
ROUNDNESS = 3.0  # of the corners where another bound becomes the longest


class Cost(NamedTuple):
    """Seconds and joules of a step, layer or kernel."""

    seconds: float
    joules: float

    def plus(self, other: Cost, times: float = 1.0) -> Cost:
        return Cost(self.seconds + times * other.seconds, self.joules + times * other.joules)


class Queued(NamedTuple):
    """The cost of operations one by one, and their part in a queue."""

    cost: Cost = Cost(0.0, 0.0)
    shown: float = 0.0  # seconds of their launches beyond their own work
    ahead: float = 0.0  # seconds of their work beyond their launches

    def plus(self, other: Queued, times: float = 1.0) -> Queued:
        shown, ahead = self.shown + times * other.shown, self.ahead + times * other.ahead
        return Queued(self.cost.plus(other.cost, times), shown, ahead)


class Truth(NamedTuple):
    """The true cost of every layer, and of a step in addition to its layers; they sum to the total."""

    layers: tuple[Cost, ...]
    step: Cost

    @property
    def total(self) -> Cost:
        total = self.step
        for layer in self.layers:
            total = total.plus(layer)
        return total


def truth_of(part: Part, network: Network, setup: TrainingSetup, clock: float = 1.0) -> Truth:
    """The true costs of a network, layer by layer; each depends a little on the network around it."""
    kept = footprint(network, setup)
    known: dict[Layer, Queued] = {}
    for layer in network.layers:
        if layer not in known:
            known[layer] = _layer_cost(part, layer, setup, kept, clock)
    drawn, step = drawn_by(part, setup.threads), part.step_seconds / clock
    shown, ahead = (sum(getattr(known[layer], name) for layer in network.layers) for name in ("shown", "ahead"))
    hidden = part.queued * ahead / (shown + ahead) if shown else 0.0
    layers = (
        found.cost.plus(Cost(found.shown, drawn * found.shown), -hidden)
        for found in (known[layer] for layer in network.layers)
    )
    return Truth(tuple(layers), Cost(step, drawn * step))


def footprint(network: Network, setup: TrainingSetup) -> float:
    """Bytes that the forward pass keeps for the backward pass."""
    forward = (
        k.values * k.repeats for x in network.layers for k in kernels_of(x, setup.optimizer) if k.stage == "forward"
    )
    return setup.bytes_per_value * sum(forward)


def stage_of(part: Part, network: Network, setup: TrainingSetup, stage: str, clock: float = 1.0) -> Cost:
    """The cost of a stage timed alone: it waits for the device, and finds the cache empty."""
    cold, waiting = math.inf, part.step_seconds / 2
    total = Cost(waiting, part.static_watts * waiting)
    for layer in network.layers:
        total = total.plus(_layer_cost(part, layer, setup, cold, clock, (stage,)).cost)
    return total


def _layer_cost(
    part: Part, layer: Layer, setup: TrainingSetup, kept: float, clock: float, stages: tuple[str, ...] = STAGES
) -> Queued:
    total = Queued()
    for kernel in (k for k in kernels_of(layer, setup.optimizer) if k.stage in stages):
        total = total.plus(kernel_cost(part, kernel, setup.bytes_per_value, kept, clock, setup.threads), kernel.repeats)
    return total


def kernel_cost(part: Part, kernel: Kernel, bytes_per_value: int, kept: float, clock: float, threads: int) -> Queued:
    """What one operation costs."""
    padded, arithmetic = _arithmetic(part, kernel, clock)
    moved = kernel.values * bytes_per_value
    set_size = max(kept, moved) if kernel.stage == "backward" else moved
    missed = moved if math.isinf(set_size) else moved * set_size / (set_size + part.cache_bytes)
    left = 1 - part.divided * (1 - 1 / threads)  # of the time on one thread, where threads divide the work
    arithmetic *= left
    feeding = min(threads, part.memory_threads)
    memory = missed / (part.bandwidth * feeding) + left * (moved - missed) / (part.cache_bandwidth * clock)
    launch = 0.0 if part.fuses and kernel.rides else part.launch_seconds / clock
    seconds, work_alone = _rounded(launch, arithmetic, memory), _rounded(arithmetic, memory)
    dynamic = part.joules_per_flop * padded + part.joules_per_cached_byte * (moved - missed)
    joules = drawn_by(part, threads) * seconds + _volts(clock) ** 2 * dynamic + part.joules_per_byte * missed
    return Queued(Cost(seconds, joules), seconds - work_alone, max(0.0, work_alone - launch))


def _rounded(*bounds: float) -> float:
    """The longest of the times, with rounded corners."""
    return float(sum(t**ROUNDNESS for t in bounds) ** (1 / ROUNDNESS))


def drawn_by(part: Part, threads: int) -> float:
    """Watts of a part while so many threads train, without those of its arithmetic and memory."""
    return part.static_watts + part.thread_watts * (threads - 1)


def _arithmetic(part: Part, kernel: Kernel, clock: float) -> tuple[float, float]:
    """FLOPs after padding to the tiles of the hardware, and the seconds they take."""
    if not kernel.m:
        return 0.0, 0.0
    m, n, depth = kernel.m, kernel.n, kernel.k * kernel.taps
    padded = 2 * m * _padded(n, part.tile_out) * _padded(kernel.k, part.tile_in) * kernel.taps
    filled = m / (m + part.half_rows) * n / (n + part.half_out) * depth / (depth + part.half_depth)
    slower = _ridge(part.ridge, kernel) * (1 + part.luck * _luck(part, kernel))
    return padded, padded * slower / (part.flops * clock * part.efficiency * filled)


def _padded(channels: float, tile: int) -> float:
    return math.ceil(channels / tile) * tile


def _ridge(ridge: Ridge | None, kernel: Kernel) -> float:
    if ridge is None or kernel.m > ridge.rows_at_most:
        return 1.0
    away = (0.5 * math.log2(kernel.n * kernel.k) - ridge.octave) / ridge.width
    return 1 + ridge.height * math.exp(-(away**2))


def _luck(part: Part, kernel: Kernel) -> float:
    """A number from -1 to 1, fixed for each shape: the algorithm that the library happens to choose."""
    return zlib.crc32(repr((part.name, kernel[:4])).encode()) / 2**31 - 1


def _volts(clock: float) -> float:
    """Relative voltage: a lower clock needs less."""
    return 0.6 + 0.4 * clock
