"""The verdict of the case study: which way kept to the budget, and what that cost in accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any, NamedTuple

from .model import CHECKED, CLOSED_LOOP, FLOPS, MODELS, ORIGINAL, OURS, SHARE


class Result(NamedTuple):
    """One model over all seeds; shares are of the original's measured energy in the same seed."""

    model: str
    shares: list[float]
    accuracies: list[float]
    inside: int  # how many seeds at most the budget
    miss: float  # mean distance from the budget, as a share of it


class Verdict(NamedTuple):
    device: str
    ways: dict[str, Result]
    repeatability: float  # mean difference of two measurements of the same model
    failed: list[str]  # why a way found nothing

    @property
    def times_as_far(self) -> float | None:
        """How many times as far from the budget FLOPs are as ours, both guiding random pruning without a check."""
        if OURS not in self.ways or FLOPS not in self.ways:
            return None
        return self.ways[FLOPS].miss / max(self.ways[OURS].miss, 1e-9)

    def accuracy_lost(self, model: str) -> float:
        return mean(self.ways[ORIGINAL].accuracies) - mean(self.ways[model].accuracies)

    def sentences(self) -> list[str]:
        """The verdict in words, failures included."""
        found = []
        if (times := self.times_as_far) is not None:
            pair = f"by Ampere {self._energy(OURS)}, by FLOPs {self._energy(FLOPS)}"
            found.append(f"Random pruning without a check: {pair} of the original's energy")
            if times >= 1:
                found.append(f"FLOPs miss the budget of {100 * SHARE:.0f} % by {times:.1f} times as much as Ampere")
            else:
                found.append(
                    f"Ampere misses the budget of {100 * SHARE:.0f} % by {1 / times:.1f} times as much as FLOPs"
                )
        both = [CHECKED[guide] for guide in (OURS, FLOPS) if CHECKED[guide] in self.ways]
        if len(both) == 2:
            ours, flops = (self._inside(model) for model in both)
            found.append(f"With the same check: by Ampere {ours}, by FLOPs {flops}")
        if CLOSED_LOOP in self.ways:
            lost = self.accuracy_lost(CLOSED_LOOP)
            found.append(f"`ampere prune`: {self._inside(CLOSED_LOOP)}; {100 * lost:+.1f} points of accuracy lost")
        return found + self.failed

    def _energy(self, model: str) -> str:
        shares = self.ways[model].shares
        return f"{100 * mean(shares):.1f} % ({100 * min(shares):.1f} to {100 * max(shares):.1f})"

    def _inside(self, model: str) -> str:
        way = self.ways[model]
        return f"{self._energy(model)}, inside in {way.inside} of {len(way.shares)} seeds"

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
            ways[model] = Result(model, shares, accuracies, inside, mean(abs(share / SHARE - 1) for share in shares))
    differences = [abs(r["joules_repeat"] / r["joules"] - 1) for r in known]
    failed = [f"{r['model']}, seed {r['seed']}: {r['failed']}" for r in records if "failed" in r]
    return Verdict(device, ways, mean(differences) if differences else 0.0, failed)
