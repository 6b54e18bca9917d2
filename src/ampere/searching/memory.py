"""Candidates that fit into memory: a rule learnt from some of them for all, and the chosen ones followed themselves.

    bytes(widths) = a + sum of b_i w_i + sum of c_i w_i w_i+1

Activations grow with a width, weights with the product of two neighbours. The rule is fitted to networks whose memory
is followed allocation by allocation; it is raised by the most that it was below any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ampere.core import units
from ampere.core.errors import UsageError
from ampere.estimation.lookup_table import Box
from ampere.estimation.memory import memory_of, runtime_bytes_in
from ampere.models.spaces import Arguments
from ampere.storage.profile import Profile

from .candidates import Group, OpenGroup, Rows
from .result import Candidate
from .spaces import SearchSpace

FOLLOWED_FOR_EACH = 3  # networks for each number of the rule
Array = NDArray[np.float64]
At = Callable[[Arguments, str], float]


def upper_bytes(space: SearchSpace, profiles: Sequence[Profile], tuned: bool) -> At:
    """The upper end of the interval of a candidate's peak memory, each followed once."""
    from ampere.tracing.memory import allocations_of

    known: dict[str, float] = {}
    runtime, dtype = runtime_bytes_in(profiles[0]), profiles[0].setup.dtype

    def at(arguments: Arguments, optimizer: str) -> float:
        key = f"{optimizer} {arguments!r}"
        if key not in known:
            loaded = space.build(arguments)
            found = allocations_of(loaded.model, loaded.inputs, optimizer, dtype)
            known[key] = memory_of(found, 1, runtime, tuned).interval[1]
        return known[key]

    return at


def within_memory(groups: Sequence[Group], at: At, limit_bytes: float) -> list[Group]:
    """The candidates of each group that fit."""
    kept, least = list[Group](), float("inf")
    for group in groups:
        sizes = _sizes(group, at)
        least = min(least, float(sizes.min()))
        if np.any(sizes <= limit_bytes):
            kept.append(group.kept(np.flatnonzero(sizes <= limit_bytes)))
    if not kept:
        raise UsageError(
            f"no candidate fits into {units.bytes(limit_bytes)}: the least that one may need is {units.bytes(least)}; "
            "give more memory, or smaller batches"
        )
    return kept


def fitting(chosen: Sequence[Candidate], at: At, limit_bytes: float) -> list[Candidate]:
    """Those that fit when each is followed itself."""
    found = [c for c in chosen if at(c.arguments, c.optimizer) <= limit_bytes]
    if not found:
        raise UsageError(f"none of the chosen candidates fits into {units.bytes(limit_bytes)}: give more memory")
    return found


def _sizes(group: Group, at: At) -> Array:
    rows = np.arange(len(group.joules))
    if not isinstance(group, OpenGroup):
        return np.array([at(group.arguments(int(row)), group.optimizer) for row in rows])
    return rule_of(group, at, 0.0).bytes(group.widths)


@dataclass(frozen=True)
class MemoryRule:
    """The rule of one group, and what its candidates may need."""

    factors: Array
    above: float  # the most that it was below a network that was followed
    limit: float

    def bytes(self, widths: Rows) -> Array:
        return np.asarray(_terms(widths) @ self.factors + self.above)

    def bytes_in(self, box: Box) -> Array:
        """Of all networks in a box, with an axis for each width."""
        widths = np.ix_(*(np.arange(low, high + 1.0) for low, high in box))
        total: Array = np.asarray(self.above + self.factors[0])
        for factor, width in zip(self.factors[1:], widths, strict=False):
            total = total + factor * width
        for factor, first, second in zip(self.factors[1 + len(box) :], widths, widths[1:], strict=False):
            total = total + factor * first * second
        return total


def rule_of(group: OpenGroup, at: At, limit_bytes: float) -> MemoryRule:
    terms = _terms(group.widths)
    most = min(len(terms), FOLLOWED_FOR_EACH * terms.shape[1])
    some = np.unique(np.linspace(0, len(terms) - 1, most).astype(int))
    sizes = np.array([at(group.arguments(int(row)), group.optimizer) for row in some])
    scale = np.abs(terms).max(axis=0)
    factors = np.linalg.lstsq(terms[some] / scale, sizes, rcond=None)[0] / scale
    return MemoryRule(factors, max(0.0, float(np.max(sizes - terms[some] @ factors))), limit_bytes)


def _terms(widths: Rows) -> Array:
    w = widths.astype(np.float64)
    return np.hstack([np.ones((len(w), 1)), w, w[:, :-1] * w[:, 1:]])
