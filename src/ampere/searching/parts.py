"""Very many candidates in parts: each part is screened by itself, anywhere, and leaves only what may be chosen.

    shape  ->  Part(first, count) ...  --screen-->  Kept  --merged-->  a group of a few thousand candidates
               networks of a shape by number,        the largest capacities at each cost,
               or as many at random                  and the cheapest and the most expensive

A part is a range of numbers, and its networks are decoded a chunk at a time: memory does not grow with the number of
candidates. What is sent to where a part is screened are tables of means (1 or 2 MB), and what comes back are rows of
widths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ampere.core.errors import UsageError

from .candidates import KEPT_RUNGS, SPAN, TRIED, Array, Group, OpenGroup, Rows
from .memory import MemoryRule
from .spaces import Shape

CHUNK = 32_768  # candidates decoded at once
PART = 4_000_000  # candidates of a part: about a second of work
MOST_KEPT = 50_000  # rows of a part, before those that were overtaken are left out
BARS = 60  # of the histogram

Spread = tuple[tuple[float, ...], tuple[int, ...]]
Over = Callable[[Callable[["Part"], "Kept"], Iterable["Part"]], Iterable["Kept"]]  # as `map`, in any order


@dataclass(frozen=True)
class Part:
    """Networks of one shape: those numbered from `first` on, or as many drawn at random."""

    group: int
    first: int
    count: int
    drawn: bool
    seed: int

    def widths(self, shape: Shape) -> Iterator[Rows]:
        """Its networks, a chunk at a time."""
        sizes = [high - low + 1 for low, high in zip(shape.least, shape.largest, strict=True)]
        least, rng = np.array(shape.least, dtype=np.int64), np.random.default_rng([self.seed, self.group, self.first])
        for begin in range(0, self.count, CHUNK):
            count = min(CHUNK, self.count - begin)
            if self.drawn:
                columns: list[Any] = [rng.integers(0, size, count, dtype=np.int32) for size in sizes]
            else:
                numbers = np.arange(self.first + begin, self.first + begin + count)
                columns = [*np.unravel_index(numbers, sizes)] if sizes else []
            yield np.stack(columns, axis=1) + least if columns else np.zeros((count, 0), dtype=np.int64)


def parts_of(shapes: Sequence[Shape], candidates: int, seed: int) -> list[Part]:
    """The parts of so many candidates: as many of every shape, and all of one that has no more."""
    found, left = list[Part](), candidates
    for n, number in enumerate(sorted(range(len(shapes)), key=lambda number: shapes[number].size)):
        size, share = shapes[number].size, max(1, left // (len(shapes) - n))
        count, drawn = min(size, share), size > share
        left -= count
        found += [Part(number, first, min(PART, count - first), drawn, seed) for first in range(0, count, PART)]
    return found


@dataclass(frozen=True)
class Kept:
    """What a part leaves."""

    group: int
    widths: Rows
    joules: Array
    capacity: Array
    screened: int = 0
    inside: int = 0  # whose estimate is inside the budget
    bars: Any = 0  # how many candidates are between two edges of the histogram


class Screen:
    """Screens parts. It holds arrays and plain records, so that it can be sent to another process."""

    def __init__(
        self,
        groups: Sequence[OpenGroup],
        allowed: float,
        power_watts: float | None = None,
        rules: Sequence[MemoryRule] = (),
    ) -> None:
        """`rules` say what memory the candidates of each group need, where that is limited."""
        self._shapes = [Shape(g.shape.least, g.shape.largest, _nothing) for g in groups]
        self._sums = [(g.sums, g.price) for g in groups]
        self._sizes = [g.capacities() for g in groups]
        self._allowed, self._power, self._rules = allowed, power_watts, list(rules)
        self._seconds = [g.seconds for g in groups] if power_watts is not None else []
        ends = np.concatenate([g.joules_of(np.array([g.shape.least, g.shape.largest])) for g in groups])
        self.edges = np.geomspace(float(ends.min()), float(ends.max()) * (1 + 1e-9), BARS + 1)
        self._rungs = np.geomspace(allowed / SPAN, allowed * (1 + 1e-9), KEPT_RUNGS + 1)

    def __call__(self, part: Part) -> Kept:
        sums, price = self._sums[part.group]
        bars, screened, inside = np.zeros(BARS, dtype=np.int64), 0, 0
        waiting, floor = [self._none(part.group)], np.full(KEPT_RUNGS + 2, -np.inf)
        for widths in part.widths(self._shapes[part.group]):
            joules = sums.seconds(widths) * price
            screened += len(joules)
            bars += np.bincount(_place(joules, self.edges), minlength=BARS)
            rows = np.flatnonzero(joules <= self._allowed)
            inside += len(rows)
            within = self._within(part.group, widths, joules)
            if within is not None:
                rows, others = rows[within[rows]], np.flatnonzero(within)
            else:
                others = np.arange(len(joules))
            capacity = self._capacity(part.group, widths[rows])
            better = capacity > floor[self._rung(joules[rows])]
            ends = others[[np.argmin(joules[others]), np.argmax(joules[others])]] if len(others) else others
            rows = np.concatenate([ends, rows[better]])
            capacity = np.concatenate([self._capacity(part.group, widths[ends]), capacity[better]])
            waiting.append(Kept(part.group, widths[rows], joules[rows], capacity))
            if sum(len(some.joules) for some in waiting) > MOST_KEPT:
                kept, floor = self._best(waiting)
                waiting = [kept]
        kept, _ = self._best(waiting)
        return Kept(part.group, kept.widths, kept.joules, kept.capacity, screened, inside, bars)

    def merged(self, kept: Sequence[Kept]) -> Kept:
        """What parts of one group leave together."""
        best, _ = self._best(kept)
        screened, inside = sum(k.screened for k in kept), sum(k.inside for k in kept)
        return Kept(best.group, best.widths, best.joules, best.capacity, screened, inside, sum(k.bars for k in kept))

    def _none(self, group: int) -> Kept:
        width = len(self._shapes[group].least)
        return Kept(group, np.zeros((0, width), dtype=np.int64), np.zeros(0), np.zeros(0))

    def _within(self, group: int, widths: Rows, joules: Array) -> NDArray[np.bool_] | None:
        """Which candidates are within the limits of memory and power; None where there are none."""
        within = None
        if self._rules:
            within = self._rules[group].bytes(widths) <= self._rules[group].limit
        if self._power is not None:
            cool = joules <= self._power * self._seconds[group](widths)
            within = cool if within is None else within & cool
        return within

    def _best(self, kept: Sequence[Kept]) -> tuple[Kept, Array]:
        """The largest TRIED capacities of each rung and both ends of joules; and what a rung now asks for."""
        widths = np.concatenate([k.widths for k in kept])
        joules, capacity = np.concatenate([k.joules for k in kept]), np.concatenate([k.capacity for k in kept])
        floor = np.full(KEPT_RUNGS + 2, -np.inf)
        if not len(joules):
            return self._none(kept[0].group), floor
        rung = self._rung(joules)
        order = np.lexsort((-capacity, rung))
        begins = np.searchsorted(rung[order], np.arange(KEPT_RUNGS + 2))
        place = np.arange(len(order)) - begins[rung[order]]
        full = order[place == TRIED - 1]
        floor[rung[full]] = capacity[full]
        rows = np.unique(np.concatenate([order[place < TRIED], [np.argmin(joules), np.argmax(joules)]]))
        return Kept(kept[0].group, widths[rows], joules[rows], capacity[rows]), floor

    def _rung(self, joules: Array) -> Rows:
        """0 below all rungs, then 1 to KEPT_RUNGS up to the budget, and one more for what is above it."""
        inside = np.where(joules < self._rungs[0], 0, 1 + _place(joules, self._rungs))
        return np.asarray(np.where(joules > self._allowed, KEPT_RUNGS + 1, inside))

    def _capacity(self, group: int, widths: Rows) -> Array:
        total = np.zeros(len(widths))
        for column, sizes in enumerate(self._sizes[group]):
            total += sizes.take(widths[:, column])
        return total


def _place(values: Array, edges: Array) -> Rows:
    """Between which of equally spaced (in logarithms) edges each value is; the ends take what is outside."""
    step = np.log(edges[-1] / edges[0]) / (len(edges) - 1)
    return np.asarray(np.clip((np.log(values / edges[0]) / step).astype(np.int64), 0, len(edges) - 2))


def _nothing(widths: Sequence[int]) -> dict[str, Any]:
    """Arguments are made where the search began."""
    return {}


def screened_in_parts(
    groups: Sequence[OpenGroup], screen: Screen, parts: Sequence[Part], over: Over, report: Callable[[int, int], None]
) -> tuple[list[Group], int, int, Spread]:
    """What all parts leave; how many were screened, how many are inside the budget, and their histogram."""
    left = dict[int, Kept]()
    for done, kept in enumerate(over(screen, parts), 1):
        known = left.get(kept.group)
        left[kept.group] = screen.merged([known, kept] if known else [kept])
        report(done, len(parts))
    bars: Any = sum(k.bars for k in left.values())
    spread = tuple(map(float, screen.edges)), tuple(int(bar) for bar in bars)
    found: list[Group] = [groups[n].at(k.widths) for n, k in sorted(left.items()) if len(k.widths)]
    if not found:
        raise UsageError("no candidate is within the limits of power and memory: give more of them")
    return found, sum(k.screened for k in left.values()), sum(k.inside for k in left.values()), spread


def shortlisted(groups: Sequence[Group], allowed: float, varied: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of a table: the candidates that are left inside the budget, the cheapest first."""
    found = []
    for group in groups:
        rows = np.flatnonzero(group.joules <= allowed)
        if not len(rows):
            continue
        costs = np.stack([group.joules[rows], group.stddevs(rows), group.capacity(rows)], axis=1).tolist()
        for row, cost in zip(rows.tolist(), costs, strict=True):
            arguments = {name: value for name, value in group.arguments(row).items() if name in varied}
            way = {"optimizer": group.optimizer, "batch": group.batch}
            found.append({**dict(zip(("joules", "stddev", "capacity"), cost, strict=True)), **way, **arguments})
    return sorted(found, key=lambda candidate: float(candidate["joules"]))
