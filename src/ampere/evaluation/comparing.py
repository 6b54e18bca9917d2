"""Trials compared with the estimates of every method: what most experiments compute their records from."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import mean, stdev
from typing import Any

from ampere.baselines.answers import measured_for
from ampere.baselines.counts import flops
from ampere.estimation.interval import Z90
from ampere.reporting.words import joules_origin

from .jobs import ProfileJob, TrialsJob, baselines_of, in_loops, trials_of
from .plan import title_of
from .session import Session
from .validation import Validation, compare, cost_of

OURS = "additive"


@dataclass(frozen=True)
class Trial:
    """One network, per iteration."""

    network: str
    layers: int
    flops: float
    seconds: float
    joules: float
    joules_repeat: float
    stddev: float | None  # of our estimate
    estimates: dict[str, float]
    joules_in_loops: float | None  # measured as the paper's method measures

    def error(self, method: str) -> float:
        return self.estimates[method] / measured_for(method, self.joules, self.joules_in_loops) - 1

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
            "joules_are": joules_origin(meter),
        }

    @property
    def mape(self) -> dict[str, float]:
        return self.validation.mape

    @property
    def mape_stderr(self) -> dict[str, float]:
        """The standard error of each method's mean error, over the networks."""
        found = {m: [abs(t.error(m)) for t in self.trials] for m in self.mape}
        return {m: stdev(errors) / sqrt(len(errors)) if len(errors) > 1 else 0.0 for m, errors in found.items()}

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


def compared(session: Session, trials: TrialsJob, others: tuple[ProfileJob, ...] = ()) -> Comparison:
    """Trials compared with their own profile's methods; each further profile adds its methods, or replaces them."""
    return session.remember(("compared", trials, others), lambda: _compared(session, trials, others))


def with_baselines(session: Session, device: str, family: str) -> Comparison:
    """Random networks of a family, estimated by every method that the plan profiles for."""
    trials = trials_of(session.plan, device, family)
    return compared(session, trials, baselines_of(session.plan, trials.profile))


def _compared(session: Session, trials: TrialsJob, others: tuple[ProfileJob, ...]) -> Comparison:
    pairs, known = session.get(trials), session.get(trials.profile)
    loops = [pair for job in in_loops(trials, others) for pair in session.get(job)]
    validation = compare(trials.family, pairs, known, "tuned", [session.get(job) for job in others], in_loops=loops)
    rows = [
        Trial(
            network=row.network,
            layers=len(first[0].network.layers),
            flops=float(flops([first[0].network])[0]),
            seconds=cost_of(first, known).seconds,
            joules=row.actual,
            joules_repeat=row.repeat,
            stddev=row.stddevs.get(OURS),
            estimates=dict(row.estimates),
            joules_in_loops=row.in_loops,
        )
        for row, (first, _) in zip(validation.rows, pairs, strict=True)
    ]
    return Comparison(trials.device, trials.family, tuple(rows), validation)
