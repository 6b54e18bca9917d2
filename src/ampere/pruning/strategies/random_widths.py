"""Random widths that meet the budget, and random channels, as in the paper."""

from __future__ import annotations

import math
from functools import partial

from ampere.pruning.response import Widths

from .problem import Chosen, Problem
from .searching import first_that_fits

DRAWS = 50
FINEST = 4096  # steps of the power from 0, where nothing goes, to HIGHEST
HIGHEST = 8.0


def choose(problem: Problem) -> Chosen | None:
    """Each group keeps a random share of its units; all shares are raised to the first power that fits."""
    for _ in range(DRAWS):
        shares = [problem.rng.uniform(0.01, 1.0) for _ in problem.full]
        power = first_that_fits(FINEST, partial(_fits, problem, shares))
        if power is not None:
            widths = zip(problem.full, _widths(problem, shares, power), strict=True)
            return {
                group: sorted(problem.rng.sample(range(full), full - kept)) for group, (full, kept) in enumerate(widths)
            }
    return None


def _fits(problem: Problem, shares: list[float], power: int) -> bool:
    return problem.fits(_widths(problem, shares, power))


def _widths(problem: Problem, shares: list[float], power: int) -> Widths:
    powers = (share ** (HIGHEST * power / FINEST) for share in shares)
    return tuple(max(1, math.floor(full * share)) for full, share in zip(problem.full, powers, strict=True))
