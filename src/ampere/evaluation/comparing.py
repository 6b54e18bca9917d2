"""Trials beside the estimates of every method: what most experiments compute their records from."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean
from typing import Any

from ampere.baselines.counts import flops
from ampere.estimation.estimate import Z90

from .jobs import ProfileJob, TrialsJob, rivals_of, trials_of
from .plan import title_of
from .session import Session
from .validation import Validation, compare

OURS = "additive"


@dataclass(frozen=True)
class Trial:
    """One network, per iteration."""

    network: str
    layers: int
    flops: float
    seconds: float
    joules: float
    joules_again: float
    stddev: float | None  # of our estimate
    estimates: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class Comparison:
    device: str
    family: str
    trials: tuple[Trial, ...]
    validation: Validation

    @property
    def of(self) -> dict[str, Any]:
        """What every record says about where it comes from."""
        meter, title = self.validation.meter, title_of(self.device)
        return {
            "device": self.device,
            "device_title": title,
            "family": self.family,
            "meter": meter.name,
            "meter_measures": meter.measured,
        }

    @property
    def mape(self) -> dict[str, float]:
        return self.validation.mape

    @property
    def repeatability(self) -> float:
        return self.validation.repeatability_mape

    @property
    def profiling_seconds(self) -> dict[str, float]:
        return self.validation.seconds

    def coverage(self, z: float = Z90) -> float:
        """How many networks lie within so many of our standard deviations."""
        inside = [abs(t.estimates[OURS] - t.joules) <= z * t.stddev for t in self.trials if t.stddev is not None]
        return mean(inside) if inside else 0.0


def compared(lab: Session, trials: TrialsJob, others: tuple[ProfileJob, ...] = ()) -> Comparison:
    """With the trials' own profile; each further one adds its methods, or replaces what the first says of them."""
    return lab.remember(("compared", trials, others), lambda: _compared(lab, trials, others))


def beside_rivals(lab: Session, device: str, family: str) -> Comparison:
    """Random networks of a family, by every method that the plan profiles for."""
    return compared(lab, trials_of(lab.plan, device, family), rivals_of(lab.plan, device, family))


def _compared(lab: Session, trials: TrialsJob, others: tuple[ProfileJob, ...]) -> Comparison:
    pairs, known = lab.get(trials), lab.get(trials.profile)
    validation = compare(trials.family, pairs, known, "tuned", [lab.get(job) for job in others])
    rows = [
        Trial(
            network=row.network,
            layers=len(first.network.layers),
            flops=float(flops([first.network])[0]),
            seconds=first.measurement.seconds,
            joules=row.actual,
            joules_again=row.again,
            stddev=row.stddevs.get(OURS),
            estimates=dict(row.estimates),
        )
        for row, (first, _) in zip(validation.rows, pairs, strict=True)
    ]
    return Comparison(trials.device, trials.family, tuple(rows), validation)
