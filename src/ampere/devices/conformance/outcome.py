"""A check, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .candidate import Candidate

KEPT, BROKEN, NOT_OFFERED = "kept", "broken", "not offered"


class Broken(Exception):
    """What the worker did instead, in one line."""


class NotOffered(Exception):
    """Something that a worker may leave out, and this one does."""


@dataclass(frozen=True)
class Check:
    name: str  # for --only
    title: str  # what a worker does that keeps to it
    run: Callable[[Candidate], None]  # Broken, NotOffered


@dataclass(frozen=True)
class Outcome:
    name: str
    title: str
    verdict: str  # kept, broken, not offered
    told: str  # what was seen instead; empty where it was kept
    seconds: float

    @property
    def broken(self) -> bool:
        return self.verdict == BROKEN
