"""Searching where narrower is not always cheaper: devices have kernels that few channels make slow."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ampere.pruning.response import Widths

from .problem import changed

LOOKS = 64
PASSES = 6
AHEAD = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
VECTORS = (4, 8, 16, 32)


def narrower(width: int) -> list[int]:
    """Widths to look at: near ones, and the next whole vectors; the widest first."""
    near = {width - step for step in AHEAD} | {(width - 1) // v * v for v in VECTORS}
    return sorted((w for w in near if 1 <= w < width), reverse=True)


def wider(width: int, full: int) -> list[int]:
    near = {width + step for step in AHEAD} | {width // v * v + v for v in VECTORS} | {full}
    return sorted(w for w in near if width < w <= full)


def first_that_fits(count: int, fits: Callable[[int], bool]) -> int | None:
    """The first of 0 .. count that fits, as far as 64 looks and a bisection tell; None if none of those does."""
    places = sorted({round(count * i / LOOKS) for i in range(LOOKS + 1)})
    enough = next((place for place in places if fits(place)), None)
    if enough is None:
        return None
    few = max((place for place in places if place < enough), default=-1)
    while enough - few > 1:
        middle = (few + enough) // 2
        if fits(middle):
            enough = middle
        else:
            few = middle
    return enough


def cheapest(full: Widths, costs: Callable[[Sequence[Widths]], Sequence[float]]) -> Widths:
    """Widths that no change of a single group makes cheaper: what a model can be made to cost at the least."""
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
