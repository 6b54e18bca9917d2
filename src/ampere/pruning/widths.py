"""The problem that every strategy solves, which units to keep inside a budget, and ways to search widths for it.

Narrower is not always cheaper: devices have kernels that few channels make slow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from ampere.estimation.features import Array

from .price import Widths
from .restoration import Removal

Chosen = dict[int, list[int]]  # removed units by the group's index


@dataclass(frozen=True)
class Problem:
    importance: Sequence[Array]  # of each group's units; each group's sums to 1
    cost: Callable[[Widths], float]
    budget: float
    rng: Random
    many: Callable[[Sequence[Widths]], Sequence[float]] | None = None  # the same cost, of many at once
    removals: Sequence[Removal] = ()  # of each group, for strategies that look at outputs

    @property
    def full(self) -> Widths:
        return tuple(len(values) for values in self.importance)

    def costs(self, candidates: Sequence[Widths]) -> Sequence[float]:
        return self.many(candidates) if self.many else [self.cost(widths) for widths in candidates]

    def fits(self, widths: Widths) -> bool:
        return self.cost(widths) <= self.budget

    def least_important(self, widths: Widths) -> Chosen:
        """The units to remove so that each group keeps its most important ones."""
        orders = [np.argsort(values, kind="stable") for values in self.importance]
        return {
            group: sorted(int(u) for u in order[: len(order) - width])
            for group, (order, width) in enumerate(zip(orders, widths, strict=True))
        }


Strategy = Callable[[Problem], "Chosen | None"]  # None where nothing that fits was found


def changed(widths: Widths, group: int, width: int) -> Widths:
    return (*widths[:group], width, *widths[group + 1 :])


SAMPLES = 64
PASSES = 6
AHEAD = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
VECTORS = (4, 8, 16, 32)


def narrower(width: int) -> list[int]:
    """Smaller widths to try: near ones, and the next whole vectors; the widest first."""
    near = {width - step for step in AHEAD} | {(width - 1) // v * v for v in VECTORS}
    return sorted((w for w in near if 1 <= w < width), reverse=True)


def wider(width: int, full: int) -> list[int]:
    near = {width + step for step in AHEAD} | {width // v * v + v for v in VECTORS} | {full}
    return sorted(w for w in near if width < w <= full)


def first_that_fits(count: int, fits: Callable[[int], bool]) -> int | None:
    """The first of 0 .. count that fits, found with 64 samples and a bisection; None if none of them does."""
    samples = sorted({round(count * i / SAMPLES) for i in range(SAMPLES + 1)})
    enough = next((n for n in samples if fits(n)), None)
    if enough is None:
        return None
    few = max((n for n in samples if n < enough), default=-1)
    while enough - few > 1:
        middle = (few + enough) // 2
        if fits(middle):
            enough = middle
        else:
            few = middle
    return enough


def cheapest(full: Widths, costs: Callable[[Sequence[Widths]], Sequence[float]]) -> Widths:
    """Widths that no change of a single group makes cheaper: the least that a model can be made to cost."""
    best = _least([full, tuple(1 for _ in full)], costs)
    for _ in range(PASSES):
        before = best
        for group, width in enumerate(full):
            best = _least([best, *(changed(best, group, w) for w in _ladder(width))], costs)
        if best == before:
            return best
    return best


def _least(candidates: Sequence[Widths], costs: Callable[[Sequence[Widths]], Sequence[float]]) -> Widths:
    return min(zip(costs(candidates), range(len(candidates)), candidates, strict=True))[2]


def _ladder(full: int) -> list[int]:
    """Each width up to 8, then whole vectors, as many as 32 of them."""
    stride = max(1, full // 256) * 8
    return sorted({w for w in (*range(1, 9), *range(8, full, stride), full) if w <= full})
