"""The least important channels of the whole model go first, whatever they cost."""

from __future__ import annotations

from ampere.pruning.response import Widths

from .problem import Chosen, Problem
from .searching import first_that_fits


def choose(problem: Problem) -> Chosen | None:
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
