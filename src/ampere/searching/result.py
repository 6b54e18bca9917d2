"""What a search found: every candidate that was trained, and those that nothing beats."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

from ampere.core import Meter

from .candidates import Candidate


@dataclass(frozen=True)
class Trial:
    """A candidate and what its short training showed."""

    candidate: Candidate
    accuracy: float | None  # None where it could not be trained
    seconds: float
    failure: str = ""

    def to_json(self) -> dict[str, Any]:
        shown = {"accuracy": self.accuracy, "training_seconds": self.seconds, "failure": self.failure}
        return {**self.candidate.to_json(), **shown}


@dataclass(frozen=True)
class Found:
    space: str
    device: str
    meter: Meter
    budget_joules: float
    confidence: float
    original_joules: float
    examples: int  # that all joules here are for: an iteration of the original
    batches: tuple[int, ...]
    screened: int
    inside: int  # whose estimate is inside the budget
    screening_seconds: float
    spread: tuple[tuple[float, ...], tuple[int, ...]]  # edges in joules, and how many of the screened lie between
    chosen: tuple[Candidate, ...]
    trained_with: str
    trials: tuple[Trial, ...] = ()

    @property
    def front(self) -> tuple[Trial, ...]:
        """Trials that no other one beats in both joules and accuracy, cheapest first."""
        best, found = -inf, []
        for trial in sorted(self.trials, key=lambda t: (t.candidate.joules, -(t.accuracy or 0.0))):
            if trial.accuracy is not None and trial.accuracy > best:
                best = trial.accuracy
                found.append(trial)
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        return {
            "space": self.space,
            "device": self.device,
            "meter": self.meter.to_json(),
            "budget_joules": self.budget_joules,
            "confidence": self.confidence,
            "original_joules": self.original_joules,
            "joules_are_of_examples": self.examples,
            "batches": list(self.batches),
            "screened": self.screened,
            "inside_budget": self.inside,
            "screening_seconds": self.screening_seconds,
            "spread": {"edges": list(self.spread[0]), "counts": list(self.spread[1])},
            "chosen": [candidate.to_json() for candidate in self.chosen],
            "trained_with": self.trained_with,
            "trials": [trial.to_json() for trial in self.trials],
            "front": [trial.to_json() for trial in self.front],
        }
