"""How much memory training needs at its peak, of what it consists, whether it fits, and the largest batch that does.

    peak = runtime + SHARE x resident memory of the step's allocations
           |         |
           |         real code on tensors without values (tracing.memory), through a model of the allocator
           what the training library takes by itself: measured by workers, else USUAL_RUNTIME

The figure is the resident memory of the whole training process, as the operating system counts it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import hypot
from statistics import median
from typing import Any

from ampere.core import units
from ampere.core.allocations import PARTS, Allocation, alive_at, peak, resident_peak
from ampere.core.errors import UsageError
from ampere.core.measurement import RESTING_BYTES
from ampere.storage.profile import Profile

RUNTIME, ALLOCATOR = "runtime", "allocator"
USUAL_RUNTIME, RUNTIME_STDDEV = 325e6, 40e6  # PyTorch for the CPU with an optimizer, where no worker measured it
MEASURED_STDDEV = 8e6
SHARE, SHARE_STDDEV = 1.05, 0.07  # real resident memory of a step over the modelled one, in benchmarks/memory.py
Z90 = 1.6449
FITS, UNCERTAIN, DOES_NOT_FIT = "fits", "may not fit", "does not fit"
MOST_BATCH = 1 << 20


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
            "limit_bytes": self.limit_bytes,
            "verdict": self.verdict,
            "largest_batch": self.largest_batch,
        }


def memory_of(
    allocations: Sequence[Allocation], batch: int, runtime_bytes: float | None = None, tuned: bool = False
) -> MemoryEstimate:
    """The estimate of a step whose allocations are known. `tuned`: the allocator keeps all memory."""
    live, when = peak(allocations)
    step = SHARE * resident_peak(allocations, tuned)
    runtime = USUAL_RUNTIME if runtime_bytes is None else runtime_bytes
    parts, layers = dict.fromkeys(PARTS, 0.0), dict[str, float]()
    for each in alive_at(allocations, when):
        parts[each.part] += each.bytes
        layers[each.layer] = layers.get(each.layer, 0.0) + each.bytes
    largest = sorted(layers.items(), key=lambda item: -item[1])
    return MemoryEstimate(
        bytes=runtime + max(step, live),
        stddev=hypot(SHARE_STDDEV * step, RUNTIME_STDDEV if runtime_bytes is None else MEASURED_STDDEV),
        parts={RUNTIME: runtime, **parts, ALLOCATOR: max(step, live) - live},
        layers=tuple(LayerMemory(name, size) for name, size in largest),
        batch=batch,
        runtime_measured=runtime_bytes is not None,
    )


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


__all__ = ["DOES_NOT_FIT", "FITS", "UNCERTAIN", "MemoryEstimate", "largest_batch", "memory_of", "runtime_bytes_in"]
