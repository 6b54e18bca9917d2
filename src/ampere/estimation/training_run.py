"""From one iteration to a whole training run: all of its parts, what they cost, and whether a battery lasts for them.

T    joules of the run's parts, as the meter counts them       S    seconds of the run
w    watts that the device draws anyway and that the meter does not count (screen, radio, idle)
r    relative standard deviation of the parts

gross = T + w S,   with standard deviation r (T + w S)             share of a battery = gross / battery
P(fits) = Phi((battery - gross) / (r gross))                       net = T - (watts at rest that the meter counts) S

The error of an iteration is the same at each of them, and the speed of the device is in all parts: errors are added,
not their squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from ampere.core.errors import UsageError

from .interval import interval90
from .running_costs import Tariff

if TYPE_CHECKING:
    from ampere.core import Meter

    from .estimate import Estimate

CERTAIN = 0.9  # a verdict with a lower probability says that it is uncertain
OPTIONAL = {"loading": "loading data", "evaluation": "evaluation", "checkpoints": "checkpoints"}
NEVER_COVERED = "starting the program and other programs on the device"


@dataclass(frozen=True)
class Battery:
    """What a full battery holds, and what else draws from it."""

    joules: float
    label: str  # as the user wrote it
    watts_idle: float | None = None  # what the whole device draws anyway, where the user gave it


@dataclass(frozen=True)
class RunPart:
    """One part of a run: training, loading, evaluation or checkpoints."""

    name: str
    count: int  # batches, or checkpoints
    joules: float
    stddev: float
    seconds: float
    source: str  # where its figures come from

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class TrainingRun:
    """The cost of a whole run by its parts, and the share of a battery that it needs."""

    iterations: int
    parts: tuple[RunPart, ...]
    idle_joules: float  # drawn meanwhile by what the meter does not count
    watts_idle: float | None  # the device at rest: as the user gave it, else as the meter read it
    watts_counted: float | None  # the device at rest as the meter counts it; None where it was not read
    meter: Meter
    battery: Battery | None = None
    tariff: Tariff = field(default_factory=Tariff)

    @property
    def joules(self) -> float:
        """As the meter counts them."""
        return sum(part.joules for part in self.parts)

    @property
    def stddev(self) -> float:
        return sum(part.stddev for part in self.parts)

    @property
    def seconds(self) -> float:
        return sum(part.seconds for part in self.parts)

    @property
    def interval(self) -> tuple[float, float]:
        """The 90 % interval of the joules."""
        return interval90(self.joules, self.stddev)

    @property
    def net_joules(self) -> float | None:
        """Joules above those of an idle device over the same time; None where the meter was not read at rest."""
        return None if self.watts_counted is None else max(0.0, self.joules - self.watts_counted * self.seconds)

    @property
    def gross(self) -> NormalDist:
        """Joules that the device draws: the run, and what is drawn meanwhile."""
        joules = self.joules + self.idle_joules
        return NormalDist(joules, max(joules * self.stddev / self.joules, 1e-12 * joules))

    @property
    def gross_interval(self) -> tuple[float, float]:
        return interval90(self.gross.mean, self.gross.stdev)

    @property
    def battery_share(self) -> float | None:
        return self.gross.mean / self.battery.joules if self.battery else None

    @property
    def battery_share_interval(self) -> tuple[float, float] | None:
        """The 90 % interval of the share."""
        if self.battery is None:
            return None
        low, high = self.gross_interval
        return low / self.battery.joules, high / self.battery.joules

    @property
    def battery_charges(self) -> int | None:
        """How many full batteries the run needs, one after the other."""
        return None if self.battery_share is None else max(1, ceil(self.battery_share))

    @property
    def fits_probability(self) -> float | None:
        """The probability that a full battery lasts for the run."""
        return self.gross.cdf(self.battery.joules) if self.battery else None

    @property
    def verdict(self) -> str | None:
        """`fits`, `does not fit`, or `uncertain`."""
        if self.fits_probability is None:
            return None
        if self.fits_probability >= CERTAIN:
            return "fits"
        return "does not fit" if self.fits_probability <= 1 - CERTAIN else "uncertain"

    @property
    def not_covered(self) -> str:
        """What the run is without, in words."""
        there = {part.name for part in self.parts}
        return ", ".join([*(words for name, words in OPTIONAL.items() if name not in there), NEVER_COVERED])

    @property
    def kwh(self) -> float:
        """At the facility's meter."""
        return self.tariff.kwh(self.gross.mean)

    def to_json(self) -> dict[str, Any]:
        share = self.battery_share_interval
        return {
            "iterations": self.iterations,
            "joules": self.joules,
            "joules_interval90": list(self.interval),
            "joules_gross": self.gross.mean,
            "joules_net_of_idle": self.net_joules,
            "seconds": self.seconds,
            "parts": [part.to_json() for part in self.parts],
            "idle_joules": self.idle_joules,
            "watts_idle": self.watts_idle,
            **self.tariff.to_json(self.gross.mean, self.gross_interval),
            "modelled": not self.meter.measured,
            "watts_origin": self.meter.origin or None,
            "watts_factor": self.meter.factor,
            "not_covered": self.not_covered,
            "battery_joules": self.battery.joules if self.battery else None,
            "battery_share": self.battery_share,
            "battery_share_interval90": list(share) if share else None,
            "battery_charges": self.battery_charges,
            "fits_probability": self.fits_probability,
            "verdict": self.verdict,
        }


def training_run(
    estimate: Estimate,
    iterations: int,
    battery: Battery | None = None,
    *,
    parts: Sequence[RunPart] = (),
    step_share: float = 1.0,
    step_source: str = "estimated",
    watts_idle: float | None = None,
    tariff: Tariff | None = None,
) -> TrainingRun:
    """What so many iterations cost, with other `parts` of the run.

    `step_share` is what an iteration costs relative to the estimate: less where gradients are accumulated.
    `watts_idle` is what the whole device draws anyway, where the user knows it.
    """
    given = battery.watts_idle if battery and watts_idle is None else watts_idle
    steps = step_share * iterations
    trained = RunPart(
        "training", iterations, estimate.joules * steps, estimate.stddev * steps, estimate.seconds * steps, step_source
    )
    whole = (trained, *parts)
    return TrainingRun(
        iterations,
        whole,
        uncounted_watts(estimate, given) * sum(part.seconds for part in whole),
        estimate.watts_idle if given is None else given,
        estimate.watts_idle,
        estimate.meter,
        battery,
        tariff or Tariff(),
    )


def uncounted_watts(estimate: Estimate, given: float | None) -> float:
    """Watts of the whole device at rest that are not in the estimate: a meter that was read at rest counts its part."""
    return max(0.0, (given or 0.0) - (estimate.watts_idle or 0.0))


def iterations_in(battery: Battery, estimate: Estimate) -> tuple[int, int]:
    """How many iterations a full battery lasts for, and how many at least with a probability of 95 %."""
    needed = estimate.joules + uncounted_watts(estimate, battery.watts_idle) * estimate.seconds
    _, most_needed = interval90(needed, needed * estimate.stddev / estimate.joules)
    return int(battery.joules / needed), int(battery.joules / most_needed)


def iterations_of_epochs(epochs: int, samples: int, batch: int) -> int:
    """An epoch's last batch may be smaller, and is a batch all the same."""
    if min(epochs, samples, batch) < 1:
        raise UsageError(f"{epochs} epochs of {samples} samples are no training run: give 1 or more of each")
    return epochs * -(-samples // batch)
