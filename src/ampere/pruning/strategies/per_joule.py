"""Ours: the channels go that lose the least importance for each joule saved.

What is kept is judged by the product over groups of the share of importance that remains, so that no group is
narrowed to nothing while others stay wide. Costs fall in steps, since hardware works on whole vectors of channels:

    joules |----.                 from 18 channels, 17 saves nothing and 16 saves much: the search looks ahead to 16.
           |    '-------.         from 16, 9 saves nothing: those channels stay unless 8 is worth its loss.
           +----8------16--

1. While dearer than the budget, take the best of all groups' next widths: least loss of importance per joule.
2. Give back what still fits: the widths that regain most importance, first of all those that cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ampere.surrogate.features import Array

from ..response import Widths
from .problem import Chosen, Problem, changed
from .searching import cheapest

AHEAD = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
VECTORS = (4, 8, 16, 32)


def choose(problem: Problem) -> Chosen | None:
    kept = [_logs_of_kept(values) for values in problem.importance]
    widths = _narrowed(problem, kept)
    if not problem.fits(widths):
        return None
    return problem.least_important(_widened(problem, kept, widths))


def _logs_of_kept(importance: Array) -> Array:
    """At index w: the logarithm of the share of importance that a group's w best units hold."""
    with np.errstate(divide="ignore"):
        return np.log(np.concatenate([[0.0], np.cumsum(np.sort(importance)[::-1])]))


def _narrowed(problem: Problem, kept: list[Array]) -> Widths:
    widths = problem.full
    while not problem.fits(widths):
        now = problem.cost(widths)
        best: tuple[float, int, int] | None = None  # loss a joule, group, width
        for group, width in _steps(widths):
            saved = now - problem.cost(changed(widths, group, width))
            if saved > 0:
                # A step beyond the budget saves no more than is needed.
                useful = min(saved, now - problem.budget)
                loss = float(kept[group][widths[group]] - kept[group][width]) / useful
                best = min(best, (loss, group, width)) if best else (loss, group, width)
        if best is None:  # no single step saves any more: from the cheapest there is, what fits is given back
            return cheapest(problem.full, problem.cost)
        widths = changed(widths, best[1], best[2])
    return widths


def _steps(widths: Widths) -> Iterator[tuple[int, int]]:
    """Narrower widths to look at: near ones, and the next whole vectors."""
    for group, width in enumerate(widths):
        near = {width - step for step in AHEAD} | {(width - 1) // v * v for v in VECTORS}
        yield from ((group, w) for w in sorted(near, reverse=True) if 1 <= w < width)


def _widened(problem: Problem, kept: list[Array], widths: Widths) -> Widths:
    while True:
        best: tuple[float, int, int] | None = None  # gain, group, width
        for group, width in enumerate(widths):
            widest = _widest_that_fits(problem, widths, group)
            gain = float(kept[group][widest] - kept[group][width])
            if widest > width and (best is None or gain > best[0]):
                best = (gain, group, widest)
        if best is None:
            return widths
        widths = changed(widths, best[1], best[2])


def _widest_that_fits(problem: Problem, widths: Widths, group: int) -> int:
    """The end of the row of wider and wider groups that fit; a vector's first channel may be dear, its last is free."""
    width, full = widths[group], problem.full[group]
    looked = sorted({min(full, width + step) for step in AHEAD} | {min(full, width // v * v + v) for v in VECTORS})
    return max((w for w in looked if problem.fits(changed(widths, group, w))), default=width)
