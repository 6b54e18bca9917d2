"""Where one network is cheapest to train: in which runtime of a device, or on which device, and how sure that is.

a, b     joules in two places, each estimated from a profile of its own: what is not known of them is independent
f        what brings a profile to the condition of the others of its device (one_condition.py)

s^2 = var(a) / a^2 + var(b) / b^2 + var(f_a) / f_a^2 + var(f_b) / f_b^2        of log(a / b), as sureness.py has it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import hypot
from typing import Any

from ampere.core import Network, TrainingSetup
from ampere.estimation.estimate import Estimate, Estimator

from .normalization import Normalized, at_one_condition
from .probability import (
    SURE,
    chance_below_one,
    device_of,
    in_percent,
    interval90,
    names_of,
    on_one_device,
    one_allocator,
)


@dataclass(frozen=True)
class Placed:
    """A network in one place, beside the place where it is cheapest."""

    name: str  # what tells it from the others
    device: str
    setup: TrainingSetup
    estimate: Estimate  # of an iteration, in one condition of the device
    moved: Normalized  # to that condition
    ratio: float = 1.0  # to the cheapest
    relative_stddev: float = 0.0  # of the ratio

    @property
    def ratio_interval90(self) -> tuple[float, float]:
        return interval90(self.ratio, self.relative_stddev)

    @property
    def dearer(self) -> float:
        """The probability that it is dearer than the one called cheapest."""
        return 1 - chance_below_one(self.ratio, self.relative_stddev)

    @property
    def own_stddev(self) -> float:
        """Relative, of its joules beside those of others."""
        return hypot(self.estimate.stddev / self.estimate.joules, self.moved.stddev)


@dataclass(frozen=True)
class Ranking:
    """One model in several places, the cheapest first."""

    model: str
    places: tuple[Placed, ...]
    one_device: bool

    @property
    def sure(self) -> float:
        """The probability that the cheapest is, beside the one that is most likely to be cheaper."""
        return min((place.dearer for place in self.places[1:]), default=1.0)

    @property
    def one_meter(self) -> bool:
        """Whether joules of all places mean the same."""
        first, *others = (place.estimate.meter for place in self.places)
        return all(meter.counts_as(first) for meter in others)

    @property
    def sentence(self) -> str:
        """`cnn5 is cheapest in torch, 97 % sure: jax costs 1.10 times as much (90 %: 1.04 to 1.16)`."""
        cheapest, *others = self.places
        rival = min(others, key=lambda place: place.dearer)
        low, high = rival.ratio_interval90
        costs = f"{rival.name} costs {rival.ratio:.2f} times as much (90 %: {low:.2f} to {high:.2f})"
        where = f"{'in' if self.one_device else 'on'} {cheapest.name}"
        if self.sure < SURE:
            return f"{self.model} is too close to call: cheapest {where} with {in_percent(self.sure)}; {costs}"
        return f"{self.model} is cheapest {where}, {in_percent(self.sure)} sure: {costs}"

    def to_json(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "cheapest": self.places[0].name,
            "sure": self.sure,
            "sentence": self.sentence,
            "places": [_record(place) for place in self.places],
        }


def rank(
    network: Network, estimators: Sequence[Estimator], allocator: str = "system", called: Sequence[str] = ()
) -> Ranking:
    """`called` are names of the profiles, such as their files', for those that nothing else tells apart."""
    profiles = [estimator.profile for estimator in estimators]
    found = []
    names, allocator = names_of(profiles, called), one_allocator(estimators, allocator)
    for name, moved, estimator in zip(names, at_one_condition(estimators, names), estimators, strict=True):
        told = moved.estimate(estimator, network, allocator)
        found.append(Placed(name, device_of(estimator.profile), estimator.profile.setup, told, moved))
    found.sort(key=lambda place: place.estimate.joules)
    cheapest, *others = found
    return Ranking(
        network.name or "network", (cheapest, *(_beside(cheapest, place) for place in others)), on_one_device(profiles)
    )


def _beside(cheapest: Placed, place: Placed) -> Placed:
    ratio = place.estimate.joules / cheapest.estimate.joules
    return replace(place, ratio=ratio, relative_stddev=hypot(place.own_stddev, cheapest.own_stddev))


def _record(place: Placed) -> dict[str, Any]:
    return {
        "name": place.name,
        "device": place.device,
        "runtime": place.setup.runtime,
        "setup": place.setup.to_json(),
        "joules": place.estimate.joules,
        "ratio": place.ratio,
        "ratio_interval90": list(place.ratio_interval90),
        "dearer": place.dearer,
        **place.moved.to_json(),
        "estimate": place.estimate.to_json(),
    }
