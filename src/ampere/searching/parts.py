"""Very many candidates in parts: each part is screened by itself, anywhere, and leaves only what may be chosen.

    shape  ->  Part(boxes) ...  --screen-->  Kept  --merged-->  a group of a few thousand candidates
               boxes of a shape by number,    the largest capacities at each cost,
               or as many at random           and the cheapest and the most expensive

    box        w1 = 17, w2 = 90, w3 = 33..64, w4 = 1..128        all networks with widths in these ranges

A layer's cost depends on one or two widths, so the costs of a box are sums of small tables along its axes: no network
is decoded or looked up by itself. Memory does not grow with the number of candidates. What is sent to where a part is
screened are tables of means (1 or 2 MB), and what comes back are rows of widths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ampere.core.errors import UsageError
from ampere.estimation.lookup_table import Box

from .candidates import KEPT_RUNGS, SPAN, TRIED, Array, Group, OpenGroup, Rows
from .memory import MemoryRule
from .spaces import Shape

BOX = 16_384  # candidates of a box, at most: its arrays stay in a core's cache
PART = 16_000_000  # candidates of a part: about a second of work
MOST_KEPT = 50_000  # rows of a part, before those that were overtaken are left out
BARS = 60  # of the histogram

Spread = tuple[tuple[float, ...], tuple[int, ...]]
Over = Callable[[Callable[["Part"], "Kept"], Iterable["Part"]], Iterable["Kept"]]  # as `map`, in any order


@dataclass(frozen=True)
class Boxes:
    """The networks of a shape in boxes: one value of its first widths, a range of the next one, all of the last."""

    ends: Box  # the least and the largest of each width
    cut: int  # which width is cut into ranges
    ranges: int

    @classmethod
    def of(cls, shape: Shape) -> Boxes:
        ends = [*zip(shape.least, shape.largest, strict=True)]
        cut = next(cut for cut in range(len(ends)) if size_of(ends[cut + 1 :]) <= BOX)
        return cls(ends, cut, -(-size_of(ends[cut : cut + 1]) // (BOX // size_of(ends[cut + 1 :]))))

    @property
    def count(self) -> int:
        return self.ranges * size_of(self.ends[: self.cut])

    def __getitem__(self, number: int) -> Box:
        number, place = divmod(number, self.ranges)
        low, size = self.ends[self.cut][0], size_of(self.ends[self.cut : self.cut + 1])
        box = [(low + place * size // self.ranges, low + (place + 1) * size // self.ranges - 1)]
        for low, high in reversed(self.ends[: self.cut]):
            number, place = divmod(number, high - low + 1)
            box.insert(0, (low + place, low + place))
        return [*box, *self.ends[self.cut + 1 :]]


def size_of(box: Box) -> int:
    """How many networks are in a box."""
    return prod(high - low + 1 for low, high in box)


@dataclass(frozen=True)
class Part:
    """The first `count` networks of these boxes of a shape."""

    group: int
    boxes: Sequence[int]
    count: int


def parts_of(shapes: Sequence[Shape], candidates: int, seed: int) -> list[Part]:
    """The parts of so many candidates: as many of every shape, and all of one that has no more.

    Of a shape that has more, boxes are drawn at random, none of them twice.
    """
    found, left = list[Part](), candidates
    for n, number in enumerate(sorted(range(len(shapes)), key=lambda number: shapes[number].size)):
        size, boxes = shapes[number].size, Boxes.of(shapes[number])
        count = min(size, max(1, left // (len(shapes) - n)))
        left -= count
        numbers: Sequence[int] = range(boxes.count)
        if count < size:
            numbers = _drawn(boxes.count, -(-count // _least(boxes)), Random(f"{seed} {number}"))
        each = max(1, PART * boxes.count // size)
        for first in range(0, len(numbers), each):
            mine = numbers[first : first + each]
            screened = min(count, sum(size_of(boxes[box]) for box in mine))
            count -= screened
            found += [Part(number, mine, screened)] if screened else []
    return found


def _least(boxes: Boxes) -> int:
    """The networks of its smallest box."""
    cut = boxes.cut
    return size_of(boxes.ends[cut : cut + 1]) // boxes.ranges * size_of(boxes.ends[cut + 1 :])


def _drawn(count: int, wanted: int, rng: Random) -> list[int]:
    """Different numbers below `count`, which may be larger than a machine's integers."""
    if 2 * wanted >= count:
        return rng.sample(range(count), min(count, wanted))
    found = dict[int, None]()
    while len(found) < wanted:
        found[rng.randrange(count)] = None
    return [*found]


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
        (sums, price), boxes, left = self._sums[part.group], Boxes.of(self._shapes[part.group]), part.count
        bars, inside, lowest, highest = np.zeros(BARS, dtype=np.int64), 0, np.inf, -np.inf
        waiting, floor = [self._none(part.group)], np.full(KEPT_RUNGS + 2, -np.inf)
        for box in (boxes[number] for number in part.boxes):
            joules = (sums.seconds_in(box) * price).ravel()[:left]
            left -= len(joules)
            bars += np.bincount(_place(joules, self.edges), minlength=BARS)
            rows = np.flatnonzero(joules <= self._allowed)
            inside += len(rows)
            within = self._within(part.group, box, joules)
            others = joules
            if within is not None:
                rows, others = rows[within[rows]], joules[within]
            capacity = self._capacity(part.group, box).ravel()
            rows = rows[capacity[rows] > floor[self._rung(joules[rows])]]
            if len(others) and (others.min() < lowest or others.max() > highest):
                lowest, highest = min(lowest, others.min()), max(highest, others.max())
                ends = np.flatnonzero((joules == lowest) | (joules == highest))
                rows = np.union1d(rows, ends if within is None else ends[within[ends]])
            if len(rows):
                waiting.append(Kept(part.group, _widths(box, rows), joules[rows], capacity[rows]))
            if sum(len(some.joules) for some in waiting) > MOST_KEPT:
                kept, floor = self._best(waiting)
                waiting = [kept]
        kept, _ = self._best(waiting)
        return Kept(part.group, kept.widths, kept.joules, kept.capacity, part.count, inside, bars)

    def merged(self, kept: Sequence[Kept]) -> Kept:
        """What parts of one group leave together."""
        best, _ = self._best(kept)
        screened, inside = sum(k.screened for k in kept), sum(k.inside for k in kept)
        return Kept(best.group, best.widths, best.joules, best.capacity, screened, inside, sum(k.bars for k in kept))

    def _none(self, group: int) -> Kept:
        width = len(self._shapes[group].least)
        return Kept(group, np.zeros((0, width), dtype=np.int64), np.zeros(0), np.zeros(0))

    def _within(self, group: int, box: Box, joules: Array) -> NDArray[np.bool_] | None:
        """Which candidates are within the limits of memory and power; None where there are none."""
        within = None
        if self._rules:
            within = (self._rules[group].bytes_in(box) <= self._rules[group].limit).ravel()[: len(joules)]
        if self._power is not None:
            cool = joules <= self._power * self._seconds[group].in_box(box).ravel()[: len(joules)]
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

    def _capacity(self, group: int, box: Box) -> Array:
        sizes = (of[low : high + 1] for of, (low, high) in zip(self._sizes[group], box, strict=True))
        total: Array = np.zeros(1)
        for size in np.ix_(*sizes):
            total = total + size
        return total


def _widths(box: Box, rows: Rows) -> Rows:
    """The networks of a box that have these numbers in it."""
    places = np.unravel_index(rows, [high - low + 1 for low, high in box])
    return np.stack([low + place for (low, _), place in zip(box, places, strict=True)], axis=1)


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
