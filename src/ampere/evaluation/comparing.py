"""Trials beside the estimates of every method: what most experiments compute their records from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ampere.baselines.flops import flops
from ampere.estimation import Z90
from ampere.validation import Validation, compare

from .lab import Lab
from .plan import title_of
from .profile_job import ProfileJob
from .trials_job import TrialsJob


@dataclass(frozen=True)
class Trial:
    """One network, per iteration."""

    network: str
    layers: int
    flops: float
    seconds: float
    joules: float
    joules_again: float
    stddev: float  # of our estimate
    estimates: dict[str, float]


@dataclass(frozen=True)
class Comparison:
    device: str
    family: str
    trials: tuple[Trial, ...]
    validation: Validation

    @property
    def of(self) -> dict[str, object]:
        """What every record says about where it comes from."""
        meter = self.validation.meter
        return {
            "device": self.device,
            "device_title": title_of(self.device),
            "family": self.family,
            "meter": meter.name,
        }

    def errors(self, method: str) -> Sequence[float]:
        return [t.estimates[method] / t.joules - 1 for t in self.trials]

    def coverage(self, z: float = Z90) -> float:
        inside = [abs(t.estimates["additive"] - t.joules) <= z * t.stddev for t in self.trials]
        return float(np.mean(inside))


def compared(lab: Lab, trials: TrialsJob, profile: ProfileJob | None = None) -> Comparison:
    """With the trials' own profile, or another one: of another family, or another budget."""
    profile = profile or trials.profile
    return lab.remember(("compared", trials, profile), lambda: _compared(lab, trials, profile))


def _compared(lab: Lab, trials: TrialsJob, profile: ProfileJob) -> Comparison:
    pairs, known = lab.get(trials), lab.get(profile)
    validation = compare(trials.family, pairs, known, "tuned")
    rows = [
        Trial(
            network=row.network,
            layers=len(first.network.layers),
            flops=float(flops([first.network])[0]),
            seconds=first.measurement.seconds,
            joules=row.actual,
            joules_again=row.again,
            stddev=row.stddevs[validation.method],
            estimates=dict(row.estimates),
        )
        for row, (first, _) in zip(validation.rows, pairs, strict=True)
    ]
    return Comparison(trials.device, trials.family, tuple(rows), validation)
