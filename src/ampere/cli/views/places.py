"""Places that are compared: what their column is called, and in which condition and for which loop they are told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ampere.comparison import Normalized
from ampere.core.setup import ALLOCATORS


def column(one_device: bool) -> str:
    return "runtime" if one_device else "device"


def conditions(places: Sequence[tuple[str, Normalized]], one_device: bool) -> Iterator[tuple[str, str]]:
    """Names, and how each was brought to the condition of another."""
    for best in dict.fromkeys(n.expressed_as for _, n in places if n.expressed_as):
        factors = [f"{name} x {n.factor:.3f}" for name, n in places if n.expressed_as == best]
        where = f"the device was for {best}" if one_device else f"it was for {best}"
        yield "condition", f"paired with PyTorch's yardstick: joules are expressed as {where} ({', '.join(factors)})"
    for caveat in dict.fromkeys(n.caveat for _, n in places if n.caveat):
        yield "careful", f"the device may have been faster or slower then: {caveat}"


def loops(allocators: Sequence[str]) -> Iterator[tuple[str, str]]:
    for allocator in dict.fromkeys(allocators):
        yield "stands for", ALLOCATORS[allocator]
    if len(set(allocators)) > 1:
        yield "careful", "not all rows stand for the same training loop: take --allocator tuned to compare them"
