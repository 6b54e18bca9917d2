"""The verdict of the case study: which way kept to the budget, and what that cost in accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any, NamedTuple

from .model import FLOPS, MODELS, ORIGINAL, OURS, SHARE

CLEARLY = 3.0  # times as far off, to be called worse


class Way(NamedTuple):
    """One model over all seeds; shares are of the original's measured energy in the same seed."""

    model: str
    shares: list[float]
    accuracies: list[float]
    inside: int  # how many seeds at most the budget
    miss: float  # mean distance from the budget, as a share of it


class Verdict(NamedTuple):
    device: str
    ways: dict[str, Way]
    repeatability: float  # mean difference of two measurements of the same model
    failed: list[str]  # why a way found nothing

    @property
    def times_as_far(self) -> float | None:
        """How many times as far from the budget FLOPs are as ours."""
        if OURS not in self.ways or FLOPS not in self.ways:
            return None
        return self.ways[FLOPS].miss / max(self.ways[OURS].miss, 1e-9)

    def accuracy_lost(self, model: str) -> float:
        return mean(self.ways[ORIGINAL].accuracies) - mean(self.ways[model].accuracies)

    def sentences(self) -> list[str]:
        """The verdict in words, failures included."""
        sentences = []
        if (ours := self.ways.get(OURS)) is not None:
            share, lost, seeds = mean(ours.shares), self.accuracy_lost(OURS), len(ours.shares)
            sentences.append(
                f"Ampere: {100 * share:.1f} % of the original's energy ({100 * min(ours.shares):.1f} to "
                f"{100 * max(ours.shares):.1f}), inside the budget of {100 * SHARE:.0f} % in {ours.inside} of {seeds} "
                f"seeds; {100 * lost:+.1f} points of accuracy lost"
            )
        if (times := self.times_as_far) is not None:
            by = f"{100 * self.ways[FLOPS].miss:.1f} % of it, {times:.1f} times as far as Ampere"
            less = "" if times > CLEARLY else f" and so not {CLEARLY:.0f} times"
            sentences.append(f"FLOPs miss the budget by {by}{less}")
        return sentences + self.failed

    def to_json(self) -> dict[str, Any]:
        ways = {name: way._asdict() for name, way in self.ways.items()}
        return {**self._asdict(), "ways": ways, "times_as_far": self.times_as_far, "says": self.sentences()}


def verdict_of(device: str, records: Sequence[dict[str, Any]]) -> Verdict:
    known = [record for record in records if record["share"] is not None]
    ways = {}
    for model in MODELS:
        own = [record for record in known if record["model"] == model]
        if own:
            shares, accuracies = [r["share"] for r in own], [r["accuracy"] for r in own]
            inside = sum(share <= SHARE for share in shares)
            ways[model] = Way(model, shares, accuracies, inside, mean(abs(share / SHARE - 1) for share in shares))
    differences = [abs(r["joules_repeat"] / r["joules"] - 1) for r in known]
    failed = [f"{r['model']}, seed {r['seed']}: {r['failed']}" for r in records if "failed" in r]
    return Verdict(device, ways, mean(differences) if differences else 0.0, failed)
