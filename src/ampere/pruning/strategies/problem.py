"""What every strategy is asked: which units to keep, so that the cost is inside the budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from ampere.estimation.features import Array
from ampere.pruning.response import Widths

Chosen = dict[int, list[int]]  # removed units by the group's index


@dataclass(frozen=True)
class Problem:
    importance: Sequence[Array]  # of each group's units; each group's sums to 1
    cost: Callable[[Widths], float]
    budget: float
    rng: Random
    many: Callable[[Sequence[Widths]], Sequence[float]] | None = None  # the same cost, where asking at once is quicker

    @property
    def full(self) -> Widths:
        return tuple(len(values) for values in self.importance)

    def costs(self, candidates: Sequence[Widths]) -> Sequence[float]:
        return self.many(candidates) if self.many else [self.cost(widths) for widths in candidates]

    def fits(self, widths: Widths) -> bool:
        return self.cost(widths) <= self.budget

    def least_important(self, widths: Widths) -> Chosen:
        """The units that go when each group keeps its most important ones."""
        orders = [np.argsort(values, kind="stable") for values in self.importance]
        return {
            group: sorted(int(u) for u in order[: len(order) - width])
            for group, (order, width) in enumerate(zip(orders, widths, strict=True))
        }


Strategy = Callable[[Problem], "Chosen | None"]  # None: it finds nothing that fits


def changed(widths: Widths, group: int, width: int) -> Widths:
    return (*widths[:group], width, *widths[group + 1 :])
