"""How much memory is resident while blocks come and go through glibc's allocator, as PyTorch uses it on Linux.

An allocator neither gives all free memory back to the system, nor can it always use it again. For a request it takes,
in this order:

    a small chunk that was freed lately, of the same size (kept apart: it is not joined with free neighbours);
    another small one: importing PyTorch leaves many of every size, elsewhere in the heap;
    the smallest free chunk of the heap in which the request fits, which is cut;
    the free top of the heap;
    at least as large as the threshold: pages of its own (mmap), given back when freed;
    a larger heap, which shrinks only at its top.

The threshold grows to the size of each block of own pages that is freed, up to 32 MiB.

A tensor begins at a multiple of 64, so more is looked for than it needs, and what is before and behind it is freed:

    | before |     tensor     | behind |

Small objects soon live in these places. When the tensor is gone, its hole is too small for the next one of the same
size, and the heap grows: on the CPU this is often a quarter of the peak.
"""

from bisect import bisect_left, insort
from typing import Dict, List, Optional, Sequence, Tuple

from .allocations import OBJECTS, Allocation, events

KIB, MIB = 1024, 1024 * 1024
PAGE, GRAIN, HEADER, SMALLEST = 4 * KIB, 16, 8, 32
ALIGNED = 64  # where tensors begin
LARGEST_CACHED, CACHED = 1040, 7  # freed chunks of one size that are kept apart at first
LARGEST_FAST = 128  # smaller ones are kept apart without limit, until something large is freed or wanted
LARGEST_SMALL, LARGE = 1024, 64 * KIB
FIRST_THRESHOLD, LARGEST_THRESHOLD = MIB + PAGE, 32 * MIB  # what importing PyTorch has raised it to
TOP_PAD = 128 * KIB
NEVER = 1 << 62


class Heap:
    """The allocator of one thread. A chunk is known by where it begins."""

    def __init__(self, keeps_all: bool = False) -> None:
        """`keeps_all`: with the settings of the tuned allocator nothing is given back, and no pages are separate."""
        self._threshold, self._trim = (NEVER, NEVER) if keeps_all else (FIRST_THRESHOLD, 2 * FIRST_THRESHOLD)
        self._top, self._end = GRAIN, GRAIN  # the free part at the end: from, to
        self._mapped: Dict[int, int] = {}  # number of a block -> bytes of its pages
        self._mapped_bytes = 0
        self._place: Dict[int, int] = {}  # number of a block -> its chunk
        self._used: Dict[int, int] = {}  # chunk -> size
        self._begins: Dict[int, int] = {}  # free chunk that can be joined -> size
        self._ends: Dict[int, int] = {}  # where it ends -> where it begins
        self._sorted: List[Tuple[int, int]] = []  # of these, (size, begin)
        self._unsorted: List[int] = []  # the others, the oldest first
        self._elsewhere = 0  # small chunks that were free from the start: below 0, where nothing is joined
        self._cached: Dict[int, List[int]] = {}  # size -> chunks
        for size in range(SMALLEST, LARGEST_CACHED + 1, GRAIN):
            self._refill(size)
        self._fast: Dict[int, List[int]] = {}

    @property
    def resident(self) -> int:
        return self._end + self._mapped_bytes

    def take(self, number: int, size: int, aligned: bool = True) -> None:
        wanted = max(SMALLEST, _up(size + HEADER, GRAIN))
        asked = wanted + ALIGNED + SMALLEST if aligned else wanted
        chunk = self._cached[asked].pop() if not aligned and self._cached.get(asked) else self._find(asked)
        if chunk is None:
            self._mapped[number] = _up(asked + HEADER, PAGE)
            self._mapped_bytes += self._mapped[number]
            return
        self._used.setdefault(chunk, asked)
        self._place[number] = self._align(chunk, wanted) if aligned else chunk

    def give_back(self, number: int) -> None:
        pages = self._mapped.pop(number, None)
        if pages is None:
            self._free(self._place.pop(number))
            return
        self._mapped_bytes -= pages
        if self._threshold < pages <= LARGEST_THRESHOLD:
            self._threshold, self._trim = pages, 2 * pages

    def _align(self, chunk: int, wanted: int) -> int:
        """Free what is before and behind; where the tensor's own chunk begins."""
        size = self._used[chunk]
        before = -(chunk + GRAIN) % ALIGNED
        if before:
            before += ALIGNED if before < SMALLEST else 0
            self._used[chunk], self._used[chunk + before] = before, size - before
            self._free(chunk)
            chunk, size = chunk + before, size - before
        if size > wanted + SMALLEST:
            self._used[chunk], self._used[chunk + wanted] = wanted, size - wanted
            self._free(chunk + wanted)
        return chunk

    def _find(self, size: int) -> Optional[int]:
        """A chunk of this size, or a little more; None for pages of its own."""
        if self._fast.get(size):
            return self._fast[size].pop()
        if size < LARGEST_SMALL:
            self._refill(size)
            return self._small(size)
        self._join_fast()
        found = self._fitting(size)
        if found is not None:
            return found
        if self._end - self._top < size + SMALLEST:
            if size >= self._threshold:
                return None
            self._end = _up(self._top + size + TOP_PAD + SMALLEST, PAGE)
        self._top += size
        return self._top - size

    def _refill(self, size: int) -> None:
        cached = self._cached.setdefault(size, [])
        cached.extend(self._small(size) for _ in range(CACHED - len(cached)))

    def _small(self, size: int) -> int:
        self._elsewhere -= size
        return self._elsewhere

    def _fitting(self, size: int) -> Optional[int]:
        """The smallest free chunk that is large enough, cut; None where there is none."""
        for chunk in self._unsorted:
            insort(self._sorted, (self._begins[chunk], chunk))
        self._unsorted.clear()
        place = bisect_left(self._sorted, (size, -1))
        return self._cut(self._sorted[place][1], size) if place < len(self._sorted) else None

    def _cut(self, chunk: int, size: int) -> int:
        whole = self._forget(chunk)
        if whole - size < SMALLEST:
            self._used[chunk] = whole
            return chunk
        self._keep(chunk + size, whole - size)
        return chunk

    def _free(self, chunk: int) -> None:
        size = self._used.pop(chunk)
        if size <= LARGEST_CACHED and len(self._cached.setdefault(size, [])) < CACHED:
            self._cached[size].append(chunk)
        elif size <= LARGEST_FAST:
            self._fast.setdefault(size, []).append(chunk)
        else:
            self._join(chunk, size)
            if size >= LARGE:
                self._join_fast()
                free = self._end - self._top
                if free >= self._trim:
                    self._end -= max(0, (free - SMALLEST - 1 - TOP_PAD) // PAGE * PAGE)

    def _join(self, chunk: int, size: int) -> None:
        if chunk < 0:
            return
        before = self._ends.get(chunk)
        if before is not None:
            chunk, size = before, size + self._forget(before)
        if chunk + size in self._begins:
            size += self._forget(chunk + size)
        if chunk + size == self._top:
            self._top = chunk
        else:
            self._keep(chunk, size)

    def _join_fast(self) -> None:
        fast, self._fast = self._fast, {}
        for size, chunks in fast.items():
            for chunk in chunks:
                self._join(chunk, size)

    def _keep(self, chunk: int, size: int) -> None:
        self._begins[chunk], self._ends[chunk + size] = size, chunk
        self._unsorted.append(chunk)

    def _forget(self, chunk: int) -> int:
        size = self._begins.pop(chunk)
        del self._ends[chunk + size]
        place = bisect_left(self._sorted, (size, chunk))
        if self._sorted[place : place + 1] == [(size, chunk)]:
            del self._sorted[place]
        else:
            self._unsorted.remove(chunk)
        return size


def _up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def resident_peak(allocations: Sequence[Allocation], keeps_all: bool = False) -> int:
    """The most bytes that are resident at once."""
    heap, most = Heap(keeps_all), 0
    for _, number, size in events(allocations):
        if size:
            heap.take(number, size, aligned=allocations[number].part != OBJECTS)
            most = max(most, heap.resident)
        else:
            heap.give_back(number)
    return most
