"""Ways to choose widths, by name. Each takes a problem and returns the units to remove.

energy        the channels that lose the least importance for each joule saved (Ampere's own)
flops         the same with FLOPs instead of joules, to compare with
magnitude     the least important channels of the whole model, whatever they cost
random        random widths that meet the budget, and random channels, as in the paper
energy_aware  layer by layer, the most expensive first, what changes outputs least (Yang et al.); then weights restored
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from ampere.estimation.features import Array

from .price import Widths
from .restoration import by_importance
from .widths import Chosen, Problem, Strategy, changed, cheapest, first_that_fits, narrower, wider

# energy: the channels go that lose the least importance for each joule saved.
#
# What is kept is judged by the product over groups of the share of importance that remains, so that no group is
# narrowed to nothing while others stay wide. Costs fall in steps, since hardware works on whole vectors of channels:
#
#     joules |----.                 from 18 channels, 17 saves nothing and 16 saves much: the search looks ahead to 16.
#            |    '-------.         from 16, 9 saves nothing: those channels stay unless 8 is worth its loss.
#            +----8------16--
#
# 1. While more expensive than the budget, take the best of all groups' next widths: least loss of importance per joule.
# 2. Give back what still fits: the widths that regain most importance, first of all those that cost nothing.
# 3. Exchange: wider here for narrower there, as long as that keeps more inside the budget.
#
# The same from groups that were all narrowed by the same share; the result that keeps most is taken.

SHARES = 256  # from all channels to none


def per_joule(problem: Problem) -> Chosen | None:
    kept = [_logs_of_kept(values) for values in problem.importance]
    starts = (_narrowed(problem, kept), _same_share(problem))
    found = [refined(problem, kept, _widened(problem, kept, s)) for s in starts if s and problem.fits(s)]
    if not found:
        return None
    best = max(found, key=lambda widths: sum(float(kept[g][w]) for g, w in enumerate(widths)))
    return problem.least_important(best)


def _same_share(problem: Problem) -> Widths | None:
    """The same share of every group, as large as fits."""

    def widths(removed: int) -> Widths:
        return tuple(max(1, full * (SHARES - removed) // SHARES) for full in problem.full)

    removed = first_that_fits(SHARES, lambda count: problem.fits(widths(count)))
    return None if removed is None else widths(removed)


def _logs_of_kept(importance: Array) -> Array:
    """At index w: the logarithm of the share of importance that a group's w best units hold."""
    with np.errstate(divide="ignore"):
        return np.log(np.concatenate([[0.0], np.cumsum(np.sort(importance)[::-1])]))


def _narrowed(problem: Problem, kept: list[Array]) -> Widths:
    """Widths inside the budget, one best step after another."""
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
    """Widths with what still fits given back: a vector's first channel may be expensive, its last is free."""
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


# Using a budget up: one group gets wider, and where that does not fit, another gets narrower for it.
#
# A greedy pass ends where no single group can be widened any more, which may be well below the budget. As in a
# knapsack, exchanges go on from there. What one costs is first guessed from its two halves, as if their factors
# multiplied; of those that should fit the best are priced themselves, and the first that really fits is taken. Where
# groups share layers of few channels the guess is poor: before giving up, those beyond the budget are priced too.

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
    """Better widths inside the budget; `kept[group][width]` is the log of the importance kept at that width."""
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
    """Exchanges whose cost should not grow by more than `room`, those that gain most first."""
    more, less = [m for m in moves if m.gain > 0], [NOTHING, *(m for m in moves if m.gain <= 0)]
    (gain_a, factor_a, group_a, _), (gain_b, factor_b, group_b, _) = (
        np.array(x).reshape(-1, 4).T for x in (more, less)
    )
    gains = np.add.outer(gain_a, gain_b)
    fits = np.multiply.outer(factor_a, factor_b) <= room
    fitting = np.flatnonzero(fits & (gains > LEAST_GAIN) & np.not_equal.outer(group_a, group_b))
    best = fitting[np.argsort(-gains.ravel()[fitting], kind="stable")][:most]
    return [_both(widths, more[i // len(less)], less[i % len(less)]) for i in best.tolist()]


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


# magnitude: the least important channels of the whole model go first, whatever they cost.


def by_magnitude(problem: Problem) -> Chosen | None:
    order = _order(problem)
    removed = first_that_fits(len(order), lambda count: problem.fits(_widths(problem, order[:count])))
    return None if removed is None else problem.least_important(_widths(problem, order[:removed]))


def _order(problem: Problem) -> list[int]:
    """The group of each unit in turn, least important first; every group keeps its best one.

    A unit counts against the mean of its group: weights of a wide layer are smaller, not less important.
    """
    ranked = []
    for group, values in enumerate(problem.importance):
        ranked += [(float(value) * len(values), group) for value in sorted(values)[:-1]]
    return [group for _, group in sorted(ranked)]


def _widths(problem: Problem, removed: list[int]) -> Widths:
    return tuple(width - removed.count(group) for group, width in enumerate(problem.full))


# random: widths and channels by chance.

DRAWS = 50
FINEST = 4096  # steps of the power from 0, where nothing goes, to HIGHEST
HIGHEST = 8.0


def at_random(problem: Problem) -> Chosen | None:
    """Each group keeps a random share of its units; all shares are raised to the first power that fits."""
    for _ in range(DRAWS):
        shares = [problem.rng.uniform(0.01, 1.0) for _ in problem.full]
        power = first_that_fits(FINEST, partial(_fits, problem, shares))
        if power is not None:
            widths = zip(problem.full, _at_power(problem, shares, power), strict=True)
            return {
                group: sorted(problem.rng.sample(range(full), full - kept)) for group, (full, kept) in enumerate(widths)
            }
    return None


def _fits(problem: Problem, shares: list[float], power: int) -> bool:
    return problem.fits(_at_power(problem, shares, power))


def _at_power(problem: Problem, shares: list[float], power: int) -> Widths:
    powers = (share ** (HIGHEST * power / FINEST) for share in shares)
    return tuple(max(1, math.floor(full * share)) for full, share in zip(problem.full, powers, strict=True))


# energy_aware: layer by layer, the most expensive first, as many channels as a tolerance of the layers' outputs allows.
# The least tolerance that meets the budget is taken; layers after the one that meets it stay as they are.

TOLERANCES = 1024  # steps from none to all of the output; finer where it is small


def layer_by_layer(problem: Problem) -> Chosen | None:
    removals = problem.removals or [by_importance(values) for values in problem.importance]
    now = problem.cost(problem.full)
    alone = problem.costs([changed(problem.full, group, 1) for group, _ in enumerate(problem.full)])
    expensive_first = sorted(range(len(problem.full)), key=lambda group: alone[group] - now)

    def widths(step: int) -> Widths:
        found = problem.full
        for group in expensive_first:
            removed = removals[group].within((step / TOLERANCES) ** 2)
            if not problem.fits(found):
                found = changed(found, group, problem.full[group] - removed)
        return found

    tolerance = first_that_fits(TOLERANCES, lambda step: problem.fits(widths(step)))
    if tolerance is None:
        return None
    left = zip(problem.full, widths(tolerance), strict=True)
    return {group: sorted(removals[group].order[: full - kept]) for group, (full, kept) in enumerate(left)}


STRATEGIES: dict[str, Strategy] = {
    "energy": per_joule,
    "magnitude": by_magnitude,
    "random": at_random,
    "flops": per_joule,  # the same search, with FLOPs for joules
    "energy_aware": layer_by_layer,
}
