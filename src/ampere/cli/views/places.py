"""Places that are compared: what their column is called, and in which condition and for which loop they are told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ampere.comparison import Normalized
from ampere.core.setup import ALLOCATORS


def column(one_device: bool) -> str:
    return "runtime" if one_device else "device"


def conditions(places: Sequence[tuple[str, Normalized]], one_device: bool) -> Iterator[tuple[str, str]]:
    """Names, and how each was brought to the condition of another."""
    for best in dict.fromkeys(moved.told_as for _, moved in places if moved.told_as):
        told = [f"{name} x {m.factor:.3f}" for name, m in places if m.told_as == best]
        where = f"the device was for {best}" if one_device else f"it was for {best}"
        yield "condition", f"beside one yardstick, PyTorch's: joules are told as {where} ({', '.join(told)})"
    for doubt in dict.fromkeys(moved.doubt for _, moved in places if moved.doubt):
        yield "careful", f"the device may have been quicker or slower then, since {doubt}"


def loops(allocators: Sequence[str]) -> Iterator[tuple[str, str]]:
    for allocator in dict.fromkeys(allocators):
        yield "stands for", ALLOCATORS[allocator]
    if len(set(allocators)) > 1:
        yield "careful", "not all rows stand for the same training loop: take --allocator tuned to compare them"
