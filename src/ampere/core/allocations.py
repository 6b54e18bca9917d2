"""Memory that a program takes and gives back: which blocks, when, and for what."""

from dataclasses import dataclass
from typing import Iterator, List, Optional, Sequence, Tuple

PARAMETERS, GRADIENTS, OPTIMIZER = "parameters", "gradients", "optimizer"
INPUTS, ACTIVATIONS, TEMPORARY, WORKSPACE = "inputs", "activations", "temporary", "workspace"
OBJECTS = "objects"  # small records of tensors and of the graph of backward
PARTS = (PARAMETERS, GRADIENTS, OPTIMIZER, INPUTS, ACTIVATIONS, TEMPORARY, WORKSPACE, OBJECTS)


@dataclass
class Allocation:
    """One block of memory. Times count allocations and releases."""

    bytes: int
    part: str  # one of PARTS
    layer: str  # the module that asked for it; "" for none
    begins: int
    ends: Optional[int] = None  # None where it lives on


Event = Tuple[int, int, int]  # time, number of the allocation, bytes: 0 where it ends


def events(allocations: Sequence[Allocation]) -> List[Event]:
    found: List[Event] = []
    for number, each in enumerate(allocations):
        if each.bytes > 0:
            found.append((each.begins, number, each.bytes))
            if each.ends is not None:
                found.append((each.ends, number, 0))
    return sorted(found)


def peak(allocations: Sequence[Allocation]) -> Tuple[int, int]:
    """The most bytes in use at once, and when."""
    used, most, when = 0, 0, 0
    sizes = [each.bytes for each in allocations]
    for time, number, size in events(allocations):
        used += size or -sizes[number]
        if used > most:
            most, when = used, time
    return most, when


def alive_at(allocations: Sequence[Allocation], time: int) -> Iterator[Allocation]:
    return (each for each in allocations if each.begins <= time and (each.ends is None or each.ends > time))
