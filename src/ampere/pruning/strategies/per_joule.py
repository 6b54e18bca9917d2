"""Ours: the channels go that lose the least importance for each joule saved.

What is kept is judged by the product over groups of the share of importance that remains, so that no group is
narrowed to nothing while others stay wide. Costs fall in steps, since hardware works on whole vectors of channels:

    joules |----.                 from 18 channels, 17 saves nothing and 16 saves much: the search looks ahead to 16.
           |    '-------.         from 16, 9 saves nothing: those channels stay unless 8 is worth its loss.
           +----8------16--

1. While dearer than the budget, take the best of all groups' next widths: least loss of importance per joule.
2. Give back what still fits: the widths that regain most importance, first of all those that cost nothing.
3. Exchange: wider here for narrower there, as long as that keeps more inside the budget (refining).

The same from groups that were all narrowed alike; what keeps most is taken.
"""

from __future__ import annotations

import numpy as np

from ampere.estimation.features import Array
from ampere.pruning.response import Widths

from .problem import Chosen, Problem, changed
from .refining import refined
from .searching import cheapest, first_that_fits, narrower, wider

SHARES = 256  # from all channels to none


def choose(problem: Problem) -> Chosen | None:
    kept = [_logs_of_kept(values) for values in problem.importance]
    starts = (_narrowed(problem, kept), _alike(problem))
    found = [refined(problem, kept, _widened(problem, kept, s)) for s in starts if s and problem.fits(s)]
    if not found:
        return None
    best = max(found, key=lambda widths: sum(float(kept[g][w]) for g, w in enumerate(widths)))
    return problem.least_important(best)


def _alike(problem: Problem) -> Widths | None:
    """The same share of every group."""

    def widths(removed: int) -> Widths:
        return tuple(max(1, full * (SHARES - removed) // SHARES) for full in problem.full)

    removed = first_that_fits(SHARES, lambda count: problem.fits(widths(count)))
    return None if removed is None else widths(removed)


def _logs_of_kept(importance: Array) -> Array:
    """At index w: the logarithm of the share of importance that a group's w best units hold."""
    with np.errstate(divide="ignore"):
        return np.log(np.concatenate([[0.0], np.cumsum(np.sort(importance)[::-1])]))


def _narrowed(problem: Problem, kept: list[Array]) -> Widths:
    widths = problem.full
    while not problem.fits(widths):
        steps = [(group, width) for group, now in enumerate(widths) for width in narrower(now)]
        costs = problem.costs([changed(widths, group, width) for group, width in steps])
        now = problem.cost(widths)
        best: tuple[float, int, int] | None = None  # loss a joule, group, width
        for (group, width), cost in zip(steps, costs, strict=True):
            if cost < now:
                # A step beyond the budget saves no more than is needed.
                useful = min(now - cost, now - problem.budget)
                loss = float(kept[group][widths[group]] - kept[group][width]) / useful
                best = min(best, (loss, group, width)) if best else (loss, group, width)
        if best is None:  # no single step saves any more: from the cheapest there is, what fits is given back
            return cheapest(problem.full, problem.costs)
        widths = changed(widths, best[1], best[2])
    return widths


def _widened(problem: Problem, kept: list[Array], widths: Widths) -> Widths:
    """A vector's first channel may be dear, its last is free."""
    while True:
        steps = [(group, width) for group, now in enumerate(widths) for width in wider(now, problem.full[group])]
        costs = problem.costs([changed(widths, group, width) for group, width in steps])
        gains = [
            (float(kept[group][width] - kept[group][widths[group]]), group, width)
            for (group, width), cost in zip(steps, costs, strict=True)
            if cost <= problem.budget
        ]
        if not gains:
            return widths
        _, group, width = max(gains)
        widths = changed(widths, group, width)
