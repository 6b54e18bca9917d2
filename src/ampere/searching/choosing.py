"""Which candidates are worth training.

    |  rung 1  | rung 2 |  ...  | rung n |      joules, each rung larger by the same factor
  least                              limit  budget       limit: the doubt just fits under the budget

Of each rung the candidate of the largest capacity that stays inside the budget with the confidence asked for.
Ways to train (optimiser, batch) take turns. Rungs that have nobody leave their place to the next best of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ampere.core import units
from ampere.core.errors import UsageError
from ampere.models.spaces import Arguments

from .candidates import Group

SPAN = 16.0  # the cheapest rung begins at most this many times below the budget
DOUBTS = 64  # of each group, to tell the typical doubt by
LOOKED_AT = 16  # of the largest capacity in a rung: the first whose doubt fits too is taken
Key = tuple[int, int]  # group, row


@dataclass(frozen=True)
class Candidate:
    arguments: Arguments
    optimizer: str
    batch: int
    joules: float  # of as many examples as an iteration of the original has
    stddev: float

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


def choose(groups: Sequence[Group], allowed: float, deviations: float, count: int) -> list[Candidate]:
    """Dearest first."""
    least = min(float(g.joules.min()) for g in groups)
    refuse_impossible(groups, least, allowed)
    dearest = max(float(g.joules.max()) for g in groups)
    limit = max(least, min(dearest, _limit(groups, allowed, deviations)))
    edges = np.geomspace(max(least, limit / SPAN), limit, count + 1)
    edges[0], edges[-1] = edges[0] * (1 - 1e-9), edges[-1] * (1 + 1e-9)
    ways = list(dict.fromkeys((g.optimizer, g.batch) for g in groups))
    chosen: dict[Key, Candidate] = {}
    for _ in range(count):
        before = len(chosen)
        for rung in range(count - 1, -1, -1):
            turn = (count - 1 - rung + len(chosen) // count) % len(ways)
            between = edges[rung : rung + 2]
            tries = (_best(groups, way, between, deviations, allowed, chosen) for way in [*ways[turn:], *ways[:turn]])
            found = next(filter(None, tries), None)
            if found and len(chosen) < count:
                chosen[found[0]] = found[1]
        if len(chosen) in (before, count):
            break
    if not chosen:
        raise UsageError(
            f"no candidate stays inside {units.joules(allowed)} with this confidence, though some are estimated "
            "below it: give a lower --confidence, or a larger budget"
        )
    return sorted(chosen.values(), key=lambda c: -c.joules)


def _limit(groups: Sequence[Group], allowed: float, deviations: float) -> float:
    """Joules above which a typical candidate's doubt reaches over the budget."""
    doubts: list[float] = []
    for group in groups:
        rows = np.flatnonzero((group.joules > allowed / 2) & (group.joules <= allowed))[:DOUBTS]
        if len(rows):
            doubts += list(group.stddevs(rows) / group.joules[rows])
    return allowed / (1 + deviations * float(np.median(doubts))) if doubts else allowed


def _best(
    groups: Sequence[Group],
    way: tuple[str, int],
    rung: Any,
    deviations: float,
    allowed: float,
    taken: dict[Key, Candidate],
) -> tuple[Key, Candidate] | None:
    best: tuple[float, Key, Candidate] | None = None
    known = {(c.optimizer, repr(c.arguments)) for c in taken.values()}
    for index, group in enumerate(groups):
        if (group.optimizer, group.batch) != way:
            continue
        rows = np.flatnonzero((group.joules > rung[0]) & (group.joules <= rung[1]))
        if not len(rows):
            continue
        capacity = group.capacity(rows)
        top = rows[np.argsort(-capacity, kind="stable")[: LOOKED_AT + len(taken)]]
        for row, stddev, size in zip(top, group.stddevs(top), np.sort(capacity)[::-1], strict=False):
            joules, arguments = float(group.joules[row]), group.arguments(int(row))
            if (best and best[0] >= size) or joules + deviations * stddev > allowed:
                continue
            if (group.optimizer, repr(arguments)) not in known:
                found = Candidate(arguments, group.optimizer, group.batch, joules, float(stddev))
                best = float(size), (index, int(row)), found
    return best[1:] if best else None


def refuse_impossible(groups: Sequence[Group], least: float, allowed: float) -> None:
    if least <= allowed:
        return
    group = min(groups, key=lambda g: float(g.joules.min()))
    cheapest = group.arguments(int(np.argmin(group.joules)))
    raise UsageError(
        f"the budget of {units.joules(allowed)} cannot be met: the least that was found is {units.joules(least)}, with "
        f"{in_words(cheapest)}; give more than that"
    )


def in_words(arguments: Arguments) -> str:
    """`channels 12-30-64, batch 10`."""
    return ", ".join(f"{name} {_value(value)}" for name, value in arguments.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "(" + " ".join(f"{k} {_value(v)}" for k, v in value.items()) + ")"
    if isinstance(value, (list, tuple)):
        return "-".join(_value(v) for v in value)
    return str(value)
