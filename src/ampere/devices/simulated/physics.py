"""What an operation costs: a roofline with rounded corners, and joules that follow work and bytes, not only time.

    arithmetic = padded FLOPs / (peak x utilisation(m, n, k))        memory = missed / bandwidth + hit / cache bandwidth
    seconds    = the longest of launch, arithmetic and memory, which overlap
    joules     = static watts x seconds + volts^2 x per FLOP x padded FLOPs + per byte x bytes

Forward data is missed where one operation's does not fit the cache; backward data where all that the network keeps
for backward does not: so a layer costs a little more in a large network than in a small one.
"""

from __future__ import annotations

import math
import zlib
from typing import NamedTuple

from ...network import Layer, Network, TrainingSetup
from .kernels import Kernel, kernels_of
from .part import Part, Ridge

STAGES = ("forward", "backward", "update")
ROUNDNESS = 3.0  # of the corners where one bound takes over from another


class Cost(NamedTuple):
    seconds: float
    joules: float

    def plus(self, other: Cost, times: float = 1.0) -> Cost:
        return Cost(self.seconds + times * other.seconds, self.joules + times * other.joules)


class Truth(NamedTuple):
    """What every layer really costs at full clock, and what a step costs besides; they sum to the total."""

    layers: tuple[Cost, ...]
    step: Cost

    @property
    def total(self) -> Cost:
        total = self.step
        for layer in self.layers:
            total = total.plus(layer)
        return total


def truth_of(part: Part, network: Network, setup: TrainingSetup, clock: float = 1.0) -> Truth:
    """By layer. What every one costs depends a little on the network it is in."""
    kept = footprint(network, setup)
    known: dict[Layer, Cost] = {}
    for layer in network.layers:
        if layer not in known:
            known[layer] = _layer_cost(part, layer, setup, kept, clock)
    step = part.step_seconds / clock
    return Truth(tuple(known[layer] for layer in network.layers), Cost(step, part.static_watts * step))


def footprint(network: Network, setup: TrainingSetup) -> float:
    """Bytes that forward leaves for backward."""
    forward = (
        k.values * k.repeats for x in network.layers for k in kernels_of(x, setup.optimizer) if k.stage == "forward"
    )
    return setup.bytes_per_value * sum(forward)


def stage_of(part: Part, network: Network, setup: TrainingSetup, stage: str, clock: float = 1.0) -> Cost:
    """One stage timed by itself: it waits for the device, and finds nothing of the stage before in the cache."""
    cold, waiting = math.inf, part.step_seconds / 2
    total = Cost(waiting, part.static_watts * waiting)
    for layer in network.layers:
        total = total.plus(_layer_cost(part, layer, setup, cold, clock, (stage,)))
    return total


def _layer_cost(
    part: Part, layer: Layer, setup: TrainingSetup, kept: float, clock: float, stages: tuple[str, ...] = STAGES
) -> Cost:
    total = Cost(0.0, 0.0)
    for kernel in (k for k in kernels_of(layer, setup.optimizer) if k.stage in stages):
        total = total.plus(kernel_cost(part, kernel, setup.bytes_per_value, kept, clock), kernel.repeats)
    return total


def kernel_cost(part: Part, kernel: Kernel, bytes_per_value: int, kept: float, clock: float) -> Cost:
    padded, arithmetic = _arithmetic(part, kernel, clock)
    moved = kernel.values * bytes_per_value
    set_size = max(kept, moved) if kernel.stage == "backward" else moved
    missed = moved if math.isinf(set_size) else moved * set_size / (set_size + part.cache_bytes)
    memory = missed / part.bandwidth + (moved - missed) / (part.cache_bandwidth * clock)
    launch = 0.0 if part.fuses and kernel.rides else part.launch_seconds / clock
    seconds = sum(t**ROUNDNESS for t in (launch, arithmetic, memory)) ** (1 / ROUNDNESS)
    dynamic = part.joules_per_flop * padded + part.joules_per_cached_byte * (moved - missed)
    joules = part.static_watts * seconds + _volts(clock) ** 2 * dynamic + part.joules_per_byte * missed
    return Cost(seconds, joules)


def _arithmetic(part: Part, kernel: Kernel, clock: float) -> tuple[float, float]:
    """FLOPs as the units see them, and the seconds they take."""
    if not kernel.m:
        return 0.0, 0.0
    m, n, depth = kernel.m, kernel.n, kernel.k * kernel.taps
    padded = 2 * m * _padded(n, part.tile_out) * _padded(kernel.k, part.tile_in) * kernel.taps
    filled = m / (m + part.half_rows) * n / (n + part.half_out) * depth / (depth + part.half_depth)
    strange = _ridge(part.ridge, kernel) * (1 + part.luck * _luck(part, kernel))
    return padded, padded * strange / (part.flops * clock * part.efficiency * filled)


def _padded(channels: float, tile: int) -> float:
    return math.ceil(channels / tile) * tile


def _ridge(ridge: Ridge | None, kernel: Kernel) -> float:
    if ridge is None or kernel.m > ridge.rows_at_most:
        return 1.0
    away = (0.5 * math.log2(kernel.n * kernel.k) - ridge.octave) / ridge.width
    return 1 + ridge.height * math.exp(-(away**2))


def _luck(part: Part, kernel: Kernel) -> float:
    """Between -1 and 1, always the same for the same shape: which algorithm the library happens to pick."""
    return zlib.crc32(repr((part.name, kernel[:4])).encode()) / 2**31 - 1


def _volts(clock: float) -> float:
    """Relative; a lower clock needs less."""
    return 0.6 + 0.4 * clock
