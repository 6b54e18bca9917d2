"""Using a budget up: one group gets wider, and where that does not fit, another gets narrower for it.

A greedy pass ends where no single group can be widened any more, which may be well below the budget. As in a
knapsack, exchanges go on from there. What one costs is first guessed from its two halves, as if their factors
multiplied; of those that should fit the best are priced themselves, and the first that really fits is taken. Where
groups share layers of few channels the guess is poor: before giving up, those beyond the budget are priced too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ampere.estimation.features import Array
from ampere.pruning.response import Widths

from .problem import Problem, changed
from .searching import narrower, wider

EXCHANGES = 60
AT_ONCE = 64
TIGHT, LOOSE = (1.0, 512), (1.5, 2048)  # how far above the budget a guess may be, and how many of those are priced
LEAST_GAIN = 1e-9


class Move(NamedTuple):
    gain: float  # in the logarithm of the importance that is kept
    factor: float  # by which the cost changes
    group: int
    width: int


NOTHING = Move(0.0, 1.0, -1, 0)


def refined(problem: Problem, kept: list[Array], widths: Widths) -> Widths:
    """`kept[group][width]` is the logarithm of the share of importance that so wide a group keeps."""
    for _ in range(EXCHANGES):
        moves = _moves(problem, kept, widths)
        better = _exchanged(problem, moves, widths, *TIGHT) or _exchanged(problem, moves, widths, *LOOSE)
        if better is None:
            break
        widths = better
    return widths


def _exchanged(problem: Problem, moves: list[Move], widths: Widths, beyond: float, priced: int) -> Widths | None:
    room = beyond * problem.budget / problem.cost(widths)
    return _first_that_fits(problem, _exchanges(moves, widths, room, priced))


def _first_that_fits(problem: Problem, candidates: list[Widths]) -> Widths | None:
    for begin in range(0, len(candidates), AT_ONCE):
        some = candidates[begin : begin + AT_ONCE]
        for widths, cost in zip(some, problem.costs(some), strict=True):
            if cost <= problem.budget:
                return widths
    return None


def _exchanges(moves: list[Move], widths: Widths, room: float, most: int) -> list[Widths]:
    """Those whose cost should not grow by more than a factor, the ones that gain most first."""
    more, less = [m for m in moves if m.gain > 0], [NOTHING, *(m for m in moves if m.gain <= 0)]
    (gain_a, factor_a, group_a, _), (gain_b, factor_b, group_b, _) = (
        np.array(x).reshape(-1, 4).T for x in (more, less)
    )
    gains = np.add.outer(gain_a, gain_b)
    fits = np.multiply.outer(factor_a, factor_b) <= room
    places = np.flatnonzero(fits & (gains > LEAST_GAIN) & np.not_equal.outer(group_a, group_b))
    best = places[np.argsort(-gains.ravel()[places], kind="stable")][:most]
    return [_both(widths, more[place // len(less)], less[place % len(less)]) for place in best.tolist()]


def _both(widths: Widths, a: Move, b: Move) -> Widths:
    one = changed(widths, a.group, a.width)
    return one if b is NOTHING else changed(one, b.group, b.width)


def _moves(problem: Problem, kept: list[Array], widths: Widths) -> list[Move]:
    now = problem.cost(widths)
    steps = [
        (group, other)
        for group, width in enumerate(widths)
        for other in (*narrower(width), *wider(width, problem.full[group]))
    ]
    costs = problem.costs([changed(widths, *step) for step in steps])
    return [
        Move(float(kept[group][other] - kept[group][widths[group]]), cost / now, group, other)
        for (group, other), cost in zip(steps, costs, strict=True)
    ]
