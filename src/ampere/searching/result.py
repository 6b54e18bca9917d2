"""The result of a search: every candidate that was trained, and the front of those that no other one beats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from ampere.core import Meter, units
from ampere.core.display import frame, html_table
from ampere.models.spaces import Arguments


@dataclass(frozen=True)
class Candidate:
    """An architecture, how it is trained, and its estimated cost."""

    arguments: Arguments  # of the function that builds it
    optimizer: str
    batch: int
    joules: float  # of as many examples as an iteration of the original has
    stddev: float

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class Trial:
    """A candidate and what its short training showed."""

    candidate: Candidate
    accuracy: float | None  # None where it could not be trained
    seconds: float
    failure: str = ""
    at_chance: bool = False  # no more accurate than guessing, within the noise of its test
    stopped_early: bool = False  # because it was at chance level after a part of its training

    def to_json(self) -> dict[str, Any]:
        return {
            **self.candidate.to_json(),
            "accuracy": self.accuracy,
            "at_chance": self.at_chance,
            "stopped_early": self.stopped_early,
            "training_seconds": self.seconds,
            "failure": self.failure,
        }


@dataclass(frozen=True)
class Found:
    """What was screened, what was chosen and trained, and the front."""

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
    varied: tuple[str, ...] = ()  # arguments that differ between networks of the space
    chance: float | None = None  # accuracy of guessing; None where it is not known
    mode: str = "capacity"  # how candidates were chosen
    power_watts: float | None = None  # limits of a candidate, where there are
    memory_bytes: float | None = None  # what training may take; None where nobody said
    shortlist: tuple[Mapping[str, Any], ...] = ()  # of candidates in parts: the largest capacities at each cost

    @property
    def front(self) -> tuple[Trial, ...]:
        """Trials above chance that no other one beats in both joules and accuracy, cheapest first."""
        best, found = -inf, []
        for trial in sorted(self.trials, key=lambda t: (t.candidate.joules, -(t.accuracy or 0.0))):
            if trial.accuracy is not None and not trial.at_chance and trial.accuracy > best:
                best = trial.accuracy
                found.append(trial)
        return tuple(found)

    def settings(self, candidate: Candidate) -> dict[str, Any]:
        """Everything that may differ between candidates: kernels, depth, widths, the batch, the optimizer."""
        varied = {k: v for k, v in candidate.arguments.items() if k in self.varied or not self.varied}
        if len(self.batches) > 1:
            varied["batch"] = candidate.batch
        if len({c.optimizer for c in self.chosen}) > 1:
            varied["optimizer"] = candidate.optimizer
        return varied

    @property
    def headline(self) -> str:
        """One sentence: the most accurate network of the front, or that there is none."""
        if not self.trials:
            return f"{self.space}: {len(self.chosen)} of {self.screened:,} candidates are worth training"
        if not self.front:
            guessing = "" if self.chance is None else f" ({units.percent(self.chance)} is guessing)"
            return f"{self.space}: no trained network is above chance level{guessing}: train longer"
        best = self.front[-1]
        share = units.percent(best.candidate.joules / self.original_joules)
        cost = f"{units.joules(best.candidate.joules)}, {share} of the original"
        return (
            f"{self.space}: {units.percent(best.accuracy or 0.0)} accuracy with {cost}; {len(self.front)} on the front"
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "space": self.space,
            "device": self.device,
            "meter": self.meter.to_json(),
            "budget_joules": self.budget_joules,
            "confidence": self.confidence,
            "mode": self.mode,
            "power_watts": self.power_watts,
            "memory_bytes": self.memory_bytes,
            "original_joules": self.original_joules,
            "joules_are_of_examples": self.examples,
            "batches": list(self.batches),
            "varied": list(self.varied),
            "screened": self.screened,
            "inside_budget": self.inside,
            "screening_seconds": self.screening_seconds,
            "spread": {"edges": list(self.spread[0]), "counts": list(self.spread[1])},
            "chosen": [candidate.to_json() for candidate in self.chosen],
            "trained_with": self.trained_with,
            "chance_accuracy": self.chance,
            "trials": [trial.to_json() for trial in self.trials],
            "front": [trial.to_json() for trial in self.front],
        }

    def rows(self) -> list[dict[str, Any]]:
        """One record for each trial, or for each chosen candidate where none was trained, with all that varied."""
        if not self.trials:
            return [self._costs(candidate) for candidate in self.chosen]
        front = self.front
        return [
            {
                "accuracy": trial.accuracy,
                "at_chance": trial.at_chance,
                "on_front": trial in front,
                **self._costs(trial.candidate),
            }
            for trial in self.trials
        ]

    def _costs(self, candidate: Candidate) -> dict[str, Any]:
        settings = self.settings(candidate)
        words = {
            name: value if isinstance(value, (int, float)) else in_words(value) for name, value in settings.items()
        }
        return {"joules": candidate.joules, "stddev": candidate.stddev, **words}

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row for each trial, or for each chosen candidate where none was trained."""
        return frame(self.rows())

    def _repr_html_(self) -> str:
        return html_table(self.headline, self.rows())


def in_words(value: Any) -> str:
    """`channels 12-30-64, batch 10`."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_part(part)}" for name, part in value.items())
    return _part(value)


def _part(value: Any) -> str:
    if isinstance(value, Mapping):
        return "(" + " ".join(f"{k} {_part(v)}" for k, v in value.items()) + ")"
    if isinstance(value, (list, tuple)):
        return "-".join(_part(v) for v in value)
    return str(value)
