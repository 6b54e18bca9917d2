"""Places that are compared: what their column is called, and in which condition of a device they are told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ampere.comparison import Moved


def column(one_device: bool) -> str:
    return "runtime" if one_device else "device"


def conditions(places: Sequence[tuple[str, Moved]], one_device: bool) -> Iterator[tuple[str, str]]:
    """Names, and how each was brought to the condition of another."""
    for first in dict.fromkeys(moved.told_as for _, moved in places if moved.condition):
        told = [f"{name} x {m.factor:.3f}" for name, m in places if m.condition and m.told_as == first]
        where = f"the device was for {first}" if one_device else f"it was for {first}"
        yield "condition", f"beside one yardstick, PyTorch's: joules are told as {where} ({', '.join(told)})"
    for doubt in dict.fromkeys(moved.doubt for _, moved in places if moved.doubt):
        yield (
            "careful",
            f"{doubt}, so the device may have been quicker or slower then: profile again, with PyTorch there",
        )
