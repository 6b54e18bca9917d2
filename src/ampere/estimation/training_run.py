"""From one iteration to a whole training run, and whether a battery lasts for it.

T    joules of training                 S    seconds of the run
w    watts that the device draws anyway and that the meter does not count (screen, radio, idle)
r    relative standard deviation of the estimate: the error of an iteration is the same at each of them

needed = T + w S,   with standard deviation r (T + w S)            share = needed / battery
P(fits) = Phi((battery - needed) / (r needed))
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from ampere.core.errors import UsageError

if TYPE_CHECKING:
    from .estimate import Estimate

Z90 = 1.6449  # 90 % of a normal distribution lies within so many standard deviations
CERTAIN = 0.9  # a verdict with a lower probability says that it is uncertain


@dataclass(frozen=True)
class Battery:
    """What a full battery holds, and what else draws from it."""

    joules: float
    label: str  # as the user wrote it
    watts_idle: float | None = None  # what the whole device draws anyway, where the user gave it


@dataclass(frozen=True)
class TrainingRun:
    """The cost of a number of iterations, and the share of a battery that they need."""

    iterations: int
    joules: float  # of training, as the meter counts it
    stddev: float
    seconds: float
    idle_joules: float  # drawn meanwhile by what the meter does not count
    watts_idle: float | None  # the device at rest: as the user gave it, else as the meter read it
    battery: Battery | None

    @property
    def interval(self) -> tuple[float, float]:
        """The 90 % interval of the joules of training."""
        return max(0.0, self.joules - Z90 * self.stddev), self.joules + Z90 * self.stddev

    @property
    def needed(self) -> NormalDist:
        """Joules taken from the battery: training, and what is drawn meanwhile."""
        joules = self.joules + self.idle_joules
        return NormalDist(joules, max(joules * self.stddev / self.joules, 1e-12 * joules))

    @property
    def battery_share(self) -> float | None:
        return self.needed.mean / self.battery.joules if self.battery else None

    @property
    def battery_share_interval(self) -> tuple[float, float] | None:
        """The 90 % interval of the share."""
        if self.battery is None:
            return None
        mean, apart = self.needed.mean, Z90 * self.needed.stdev
        return max(0.0, mean - apart) / self.battery.joules, (mean + apart) / self.battery.joules

    @property
    def fits_probability(self) -> float | None:
        """The probability that a full battery lasts for the run."""
        return self.needed.cdf(self.battery.joules) if self.battery else None

    @property
    def verdict(self) -> str | None:
        """`fits`, `does not fit`, or `uncertain`."""
        if self.fits_probability is None:
            return None
        if self.fits_probability >= CERTAIN:
            return "fits"
        return "does not fit" if self.fits_probability <= 1 - CERTAIN else "uncertain"

    def to_json(self) -> dict[str, Any]:
        share = self.battery_share_interval
        return {
            "iterations": self.iterations,
            "joules": self.joules,
            "joules_interval90": list(self.interval),
            "seconds": self.seconds,
            "idle_joules": self.idle_joules,
            "watts_idle": self.watts_idle,
            "battery_joules": self.battery.joules if self.battery else None,
            "battery_share": self.battery_share,
            "battery_share_interval90": list(share) if share else None,
            "fits_probability": self.fits_probability,
            "verdict": self.verdict,
        }


def training_run(estimate: Estimate, iterations: int, battery: Battery | None = None) -> TrainingRun:
    """What so many iterations cost."""
    given = battery.watts_idle if battery else None
    seconds = estimate.seconds * iterations
    return TrainingRun(
        iterations,
        estimate.joules * iterations,
        estimate.stddev * iterations,
        seconds,
        uncounted_watts(estimate, given) * seconds,
        estimate.watts_idle if given is None else given,
        battery,
    )


def uncounted_watts(estimate: Estimate, given: float | None) -> float:
    """Watts of the whole device at rest that are not in the estimate: a meter that was read at rest counts its part."""
    return max(0.0, (given or 0.0) - (estimate.watts_idle or 0.0))


def iterations_in(battery: Battery, estimate: Estimate) -> tuple[int, int]:
    """How many iterations a full battery lasts for, and how many at least with a probability of 95 %."""
    needed = estimate.joules + uncounted_watts(estimate, battery.watts_idle) * estimate.seconds
    most_needed = needed * (1 + Z90 * estimate.stddev / estimate.joules)
    return int(battery.joules / needed), int(battery.joules / most_needed)


def iterations_of_epochs(epochs: int, samples: int, batch: int) -> int:
    """An epoch's last batch may be smaller, and is a batch all the same."""
    if min(epochs, samples, batch) < 1:
        raise UsageError(f"{epochs} epochs of {samples} samples are no training run: give 1 or more of each")
    return epochs * -(-samples // batch)
