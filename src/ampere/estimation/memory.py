"""How much memory training needs at its peak, of what it consists, whether it fits, and the largest batch that does.

    peak = runtime + share x resident memory of the step's allocations
           |         |       |
           |         |       real code on tensors without values (tracing.memory), through a model of the allocator
           |         SHARE
           what the training library takes by itself: measured by workers, else USUAL_RUNTIME

The figure is the resident memory of the whole training process, as the operating system counts it. Where processes have
trained the model's own code it is the peak that they showed. Another batch of the model then has the runtime and the
share that explain this peak and are most probable:

    V = stddev(runtime)^2 + step^2 stddev(share)^2,   e = the peak that was seen - runtime - share x step
    runtime + e stddev(runtime)^2 / V,                share + e step stddev(share)^2 / V
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from math import hypot, sqrt
from statistics import median
from typing import Any

from ampere.core import units
from ampere.core.allocations import PARTS, Allocation, alive_at, peak, resident_peak
from ampere.core.errors import UsageError
from ampere.core.measurement import (
    FIRST_PEAK_BYTES,
    PEAK_BYTES,
    PEAK_STEPS,
    RESTING_BYTES,
    Measurement,
    robust_spread,
)
from ampere.core.network import Network
from ampere.storage.profile import Observation, Profile

from .interval import Z90

RUNTIME, ALLOCATOR = "runtime", "allocator"
USUAL_RUNTIME, RUNTIME_STDDEV = 316e6, 40e6  # PyTorch for the CPU with an optimizer, where no worker measured it
MEASURED_STDDEV = 12e6  # a worker imports Ampere too, and a script other kernels
SHARE, SHARE_STDDEV = 1.05, 0.12  # real resident memory of a step over the modelled one, in benchmarks/memory.py
SEEN_STDDEV = 0.045  # of a peak that was seen, relative: other processes, and steps after many
# What the peak still grows after so few steps, over what it has grown since the first, and at most: holes add up.
ENOUGH_STEPS, LATER_GROWTH, MOST_GROWTH, LATER_STDDEV = 4, {2: 0.3, 3: 0.1}, 0.06, 0.7
LARGEST_OF_THREE = {1: 0.025, 2: 0.009}  # relative, over the largest of so many processes
FITS, UNCERTAIN, DOES_NOT_FIT = "fits", "may not fit", "does not fit"
MOST_BATCH = 1 << 20


@dataclass(frozen=True)
class PeakSeen:
    """The peak of processes that trained a model's own code at one batch."""

    bytes: float  # of a longer run: the largest of three processes
    stddev: float  # of one process
    processes: int
    measured_bytes: float  # the largest of these processes, as it was read


@dataclass(frozen=True)
class LayerMemory:
    """What is held for one module at the peak."""

    name: str
    bytes: float


@dataclass(frozen=True)
class MemoryEstimate:
    """Peak resident bytes of the process that trains. The parts sum to the peak."""

    bytes: float
    stddev: float
    parts: dict[str, float]  # allocator: free memory that it neither uses nor gives back
    layers: tuple[LayerMemory, ...]  # the largest first; "" is what belongs to no module
    batch: int
    runtime_measured: bool
    traced_bytes: float  # what the trace alone says
    seen: PeakSeen | None = None  # what its own code showed, at this or another batch; None where it was not trained
    limit_bytes: float | None = None  # what there is for it; None where that is not known
    largest_batch: int | None = None  # that stays inside the limit; None where nobody asked

    @property
    def interval(self) -> tuple[float, float]:
        """The bytes that 90 % of processes should lie between."""
        return max(0.0, self.bytes - Z90 * self.stddev), self.bytes + Z90 * self.stddev

    @property
    def verdict(self) -> str | None:
        """Whether it fits: by the whole interval, by a part of it, or not at all. None without a limit."""
        if self.limit_bytes is None:
            return None
        low, high = self.interval
        return FITS if high <= self.limit_bytes else UNCERTAIN if low <= self.limit_bytes else DOES_NOT_FIT

    def within(self, limit_bytes: float | None) -> MemoryEstimate:
        """The same estimate, judged by another limit."""
        return replace(self, limit_bytes=limit_bytes)

    def to_json(self) -> dict[str, Any]:
        return {
            "peak_bytes": self.bytes,
            "stddev_bytes": self.stddev,
            "interval90_bytes": list(self.interval),
            "parts_bytes": self.parts,
            "layers": [vars(layer) for layer in self.layers],
            "batch": self.batch,
            "runtime_measured": self.runtime_measured,
            "traced_bytes": self.traced_bytes,
            "seen": self.seen and asdict(self.seen),
            "limit_bytes": self.limit_bytes,
            "verdict": self.verdict,
            "largest_batch": self.largest_batch,
        }


@dataclass(frozen=True)
class Law:
    """How a process's peak follows from the modelled memory of a step, and the covariance of both numbers."""

    runtime: float
    share: float
    runtime_variance: float
    share_variance: float
    covariance: float = 0.0

    def bytes(self, step: float) -> float:
        return self.runtime + self.share * step

    def variance(self, step: float) -> float:
        both = self.runtime_variance + 2 * step * self.covariance + step**2 * self.share_variance
        return max(0.0, both)

    def through(self, step: float, seen: float) -> Law:
        """The most probable law with which a step of this size has the peak that was seen."""
        total, apart = self.variance(step), seen - self.bytes(step)
        of_runtime = self.runtime_variance + step * self.covariance
        of_share = self.covariance + step * self.share_variance
        return Law(
            self.runtime + apart * of_runtime / total,
            self.share + apart * of_share / total,
            self.runtime_variance - of_runtime**2 / total,
            self.share_variance - of_share**2 / total,
            self.covariance - of_runtime * of_share / total,
        )


def _law(runtime_bytes: float | None) -> Law:
    deviation = RUNTIME_STDDEV if runtime_bytes is None else MEASURED_STDDEV
    runtime = USUAL_RUNTIME if runtime_bytes is None else runtime_bytes
    return Law(runtime, SHARE, deviation**2, (SHARE * SHARE_STDDEV) ** 2)


def memory_of(
    allocations: Sequence[Allocation],
    batch: int,
    runtime_bytes: float | None = None,
    tuned: bool = False,
    seen: PeakSeen | None = None,
    seen_step: float = 0.0,
) -> MemoryEstimate:
    """The estimate of a step whose allocations are known. `tuned`: the allocator keeps all memory.

    `seen` is the peak that processes showed for a step whose modelled memory is `seen_step`.
    """
    live, when = peak(allocations)
    modelled, traced = resident_peak(allocations, tuned), _law(runtime_bytes)
    law = traced.through(seen_step, seen.bytes) if seen else traced
    step = max(law.share * modelled, 0.0 if seen else live)
    parts, layers = dict.fromkeys(PARTS, 0.0), dict[str, float]()
    for each in alive_at(allocations, when):
        parts[each.part] += each.bytes
        layers[each.layer] = layers.get(each.layer, 0.0) + each.bytes
    largest = sorted(layers.items(), key=lambda item: -item[1])
    smaller = min(1.0, step / live) if live else 1.0  # where less was seen than the trace says
    parts = {name: smaller * size for name, size in parts.items()}
    return MemoryEstimate(
        bytes=law.runtime + step,
        stddev=hypot(sqrt(law.variance(modelled)), seen.stddev if seen else 0.0),
        parts={RUNTIME: law.runtime, **parts, ALLOCATOR: step - smaller * live},
        layers=tuple(LayerMemory(name, smaller * size) for name, size in largest),
        batch=batch,
        runtime_measured=runtime_bytes is not None,
        traced_bytes=traced.runtime + max(traced.share * modelled, live),
        seen=seen,
    )


def peak_seen(touches: Sequence[Observation], network: Network, allocator: str = "system") -> PeakSeen | None:
    """The peak of the processes that trained this network's own code; None where none said it."""
    own = [o.measurement for o in touches if o.network == network and o.measurement.allocator == allocator]
    shown = [m for m in own if m.conditions.get(PEAK_BYTES, 0) > 0]
    if not shown:
        return None
    enough = [m for m in shown if _steps(m) >= ENOUGH_STEPS]
    read = max(m.conditions[PEAK_BYTES] for m in shown)
    grown = read if enough else max(map(_in_a_run, shown))
    spread = robust_spread([m.conditions[PEAK_BYTES] for m in enough]) or 0.0
    largest = grown * (1 + LARGEST_OF_THREE.get(len(enough or shown), 0.0))
    stddev = hypot(spread * grown, SEEN_STDDEV * grown, LATER_STDDEV * (grown - read))
    return PeakSeen(largest, stddev, len(shown), read)


def _in_a_run(measurement: Measurement) -> float:
    """The peak of a process, raised by what it grows after the few steps that it trained."""
    conditions = measurement.conditions
    peak = conditions[PEAK_BYTES]
    since_first = peak - conditions.get(FIRST_PEAK_BYTES, peak)
    later = LATER_GROWTH.get(_steps(measurement), 0.0)
    return peak + min(later * since_first, MOST_GROWTH * peak)


def _steps(measurement: Measurement) -> int:
    return round(measurement.conditions.get(PEAK_STEPS, measurement.iterations))


def runtime_bytes_in(profile: Profile) -> float | None:
    """What the training library takes before anything is trained, as workers measured it; None where none did."""
    measured = (o.measurement.conditions.get(RESTING_BYTES) for o in profile.observations)
    found = [value for value in measured if value]
    return median(found) if found else None


def largest_batch(at: Callable[[int], MemoryEstimate], limit_bytes: float) -> int:
    """The largest batch whose whole interval is below the limit. Memory grows with the batch, nearly as a line."""

    def fits(batch: int) -> bool:
        return at(batch).interval[1] <= limit_bytes

    if not fits(1):
        least = units.bytes(at(1).interval[1])
        raise UsageError(
            f"not even a batch of 1 fits into {units.bytes(limit_bytes)}: it may need {least}; "
            "give more memory, or a smaller model"
        )
    low, high = 1, 2
    while high < MOST_BATCH and fits(high):
        low, high = high, high * 4
    while high - low > max(1, low // 50):  # to 2 %: finer steps are below the uncertainty
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


__all__ = [
    "DOES_NOT_FIT",
    "FITS",
    "UNCERTAIN",
    "MemoryEstimate",
    "PeakSeen",
    "largest_batch",
    "memory_of",
    "peak_seen",
    "runtime_bytes_in",
]
