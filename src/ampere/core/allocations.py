"""Memory that a program takes and gives back, and what of it stays in the machine's memory.

An allocator does not give all free memory back to the system, and cannot always use it again. What glibc does with a
request, in this order:

    the smallest free chunk of the heap in which it fits, which is cut;
    the free top of the heap;
    at least as large as the threshold: pages of its own (mmap), given back when freed;
    a larger heap, which shrinks only at its top.

The threshold is 128 KiB at first, and grows to the size of each block of own pages that is freed, up to 32 MiB.

A tensor begins at a multiple of 64, so glibc looks for more than it needs and frees what is before and behind:

    | sliver |     tensor     | rest |        a hole of this size serves the same request again only as a whole

Small objects take slivers, so the next tensor of the same size often does not fit and the heap grows. Which slivers are
taken is not known: here it is each second one, which came closest to real processes.
"""

from bisect import bisect_left, insort
from dataclasses import dataclass, replace
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

PARAMETERS, GRADIENTS, OPTIMIZER = "parameters", "gradients", "optimizer"
INPUTS, ACTIVATIONS, TEMPORARY, WORKSPACE = "inputs", "activations", "temporary", "workspace"
PARTS = (PARAMETERS, GRADIENTS, OPTIMIZER, INPUTS, ACTIVATIONS, TEMPORARY, WORKSPACE)

KIB, MIB = 1024, 1024 * 1024
PAGE = 4 * KIB
HEADER, SLIVER, SEARCHED = 16, 48, 96  # before each chunk; before an aligned one; what is asked for in addition
FIRST_THRESHOLD, LARGEST_THRESHOLD = 128 * KIB, 32 * MIB
TOP_PAD = 128 * KIB
# Of processes when training begins: as glibc has it, after importing PyTorch, and after freeing something larger.
THRESHOLDS = (FIRST_THRESHOLD, MIB, 4 * MIB)
SETTLING, COUNTED = 5, 4  # steps until a loop is what it stays, and steps that fresh pages are averaged over


@dataclass
class Allocation:
    """One block of memory. Times count allocations and releases."""

    bytes: int
    part: str  # one of PARTS
    layer: str  # the module that asked for it; "" for none
    begins: int
    ends: Optional[int] = None  # None where it lives on
    step: int = 0  # that asked for it, from 1 on; 0 for none


class FreshPages(NamedTuple):
    """Pages that a step takes anew from the system: each is a page fault."""

    certain: float  # of blocks that are always too large for the heap
    by_lot: float  # of others: where they lie decides, and what else lies there


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


class Heap:
    """glibc's allocator of one thread: how much memory is resident while blocks come and go."""

    def __init__(self, keeps_all: bool = False, threshold: int = FIRST_THRESHOLD) -> None:
        """`keeps_all`: with the settings of the tuned allocator nothing is given back, and no pages are separate."""
        self._keeps_all = keeps_all
        self._threshold = threshold
        self._slivers = 0
        self._end = 0  # of the part in use: what follows is the top
        self._size = 0
        self._mapped: Dict[int, int] = {}
        self._mapped_bytes = 0
        self._used: Dict[int, Tuple[int, int]] = {}  # number -> (begin, size)
        self._free: List[Tuple[int, int]] = []  # (size, begin), sorted
        self._begins: Dict[int, int] = {}  # free chunks: begin -> size
        self._ends: Dict[int, int] = {}  # end -> begin

    @property
    def resident(self) -> int:
        return self._size + self._mapped_bytes

    def take(self, number: int, size: int) -> None:
        chunk = -(-(size + HEADER) // 16) * 16
        searched = chunk + SEARCHED
        place = bisect_left(self._free, (searched, -1))
        if place < len(self._free):
            free, begin = self._free[place]
            self._forget(begin, free)
            self._slivers += 1
            if self._slivers % 2:
                self._keep(begin, SLIVER)
            self._keep(begin + SLIVER + chunk, free - SLIVER - chunk)
            self._used[number] = begin + SLIVER, chunk
            return
        if searched > self._size - self._end:
            if searched >= self._threshold and not self._keeps_all:
                self._mapped[number] = _pages(searched)
                self._mapped_bytes += self._mapped[number]
                return
            self._size = _pages(self._end + searched + TOP_PAD)
        self._keep(self._end, SLIVER)
        self._used[number] = self._end + SLIVER, chunk
        self._end += SLIVER + chunk

    def give_back(self, number: int) -> None:
        pages = self._mapped.pop(number, None)
        if pages is not None:
            self._mapped_bytes -= pages
            if pages <= LARGEST_THRESHOLD:
                self._threshold = max(self._threshold, pages)
            return
        begin, size = self._used.pop(number)
        before = self._ends.get(begin)
        if before is not None:
            length = self._begins[before]
            self._forget(before, length)
            begin, size = before, size + length
        after = self._begins.get(begin + size)
        if after is not None:
            self._forget(begin + size, after)
            size += after
        if begin + size < self._end:
            self._keep(begin, size)
            return
        self._end = begin
        trim = 2 * self._threshold if self._threshold > FIRST_THRESHOLD else FIRST_THRESHOLD
        if self._size - self._end > trim and not self._keeps_all:
            self._size = _pages(self._end + TOP_PAD)

    def _keep(self, begin: int, size: int) -> None:
        if size > 0:
            insort(self._free, (size, begin))
            self._begins[begin], self._ends[begin + size] = size, begin

    def _forget(self, begin: int, size: int) -> None:
        del self._free[bisect_left(self._free, (size, begin))]
        del self._begins[begin], self._ends[begin + size]


def _pages(size: int) -> int:
    return -(-size // PAGE) * PAGE


def resident_peak(allocations: Sequence[Allocation], keeps_all: bool = False) -> int:
    """The most bytes that are resident at once."""
    heap, most = Heap(keeps_all), 0
    for _, number, size in events(allocations):
        if size:
            heap.take(number, size)
            most = max(most, heap.resident)
        else:
            heap.give_back(number)
    return most


def fresh_pages(allocations: Sequence[Allocation], keeps_all: bool = False) -> FreshPages:
    """What a step of a long loop takes anew, on the average of processes that begin differently.

    The second step is repeated: its successor shows what of it lives on, and the optimizer's state is there.
    """
    first = [min((each.begins for each in allocations if each.step == step), default=0) for step in (2, 3)]
    period = first[1] - first[0]
    if keeps_all or period <= 0:
        return FreshPages(0.0, 0.0)
    second = [each for each in allocations if each.step == 2 and each.ends is not None]
    repeated = [each for each in allocations if each.begins < first[1]]
    for number in range(1, SETTLING + COUNTED):
        late = number * period
        repeated += [replace(each, begins=each.begins + late, ends=(each.ends or 0) + late) for each in second]
    found = events(repeated)
    from_when, until = first[1] + (SETTLING - 1) * period, first[1] + (SETTLING + COUNTED - 1) * period
    taken = 0
    for threshold in THRESHOLDS:
        heap = Heap(threshold=threshold)
        for time, number, size in found:
            before = heap.resident
            if size:
                heap.take(number, size)
            else:
                heap.give_back(number)
            if from_when <= time < until:
                taken += max(0, heap.resident - before)
    pages = taken / PAGE / COUNTED / len(THRESHOLDS)
    certain = min(pages, sum(each.bytes for each in second if each.bytes > LARGEST_THRESHOLD) / PAGE)
    return FreshPages(certain, pages - certain)
