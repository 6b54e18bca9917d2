"""A check of a worker, and its outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .candidate import Candidate

KEPT, BROKEN, NOT_OFFERED = "kept", "broken", "not offered"


class Broken(Exception):
    """A check that failed; the message says in one line what the worker did instead."""


class NotOffered(Exception):
    """A check of something optional that this worker does not offer."""


@dataclass(frozen=True)
class Check:
    """One rule of the protocol, and the function that checks it."""

    name: str  # for --only
    title: str  # what a worker does that follows the rule
    run: Callable[[Candidate], None]  # raises Broken or NotOffered


@dataclass(frozen=True)
class Outcome:
    """The result of one check."""

    name: str
    title: str
    verdict: str  # kept, broken, not offered
    reason: str  # why it is broken or not offered; empty where it was kept
    seconds: float

    @property
    def broken(self) -> bool:
        return self.verdict == BROKEN
