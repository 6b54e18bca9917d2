"""What a rival is: a name, what it learns from, and how it learns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from ampere.core import Network
from ampere.estimation.additive import Data
from ampere.estimation.features import Array
from ampere.estimation.fitting import data_of
from ampere.storage.profile import Observation, Profile

Estimator = Callable[[Sequence[Network]], Array]  # networks -> CPU seconds a step, in the reference condition


@dataclass(frozen=True)
class Evidence:
    """What a method may learn from: all of it is of the sort that the method asked for."""

    observations: tuple[Observation, ...]
    yardstick_seconds: float

    @cached_property
    def _data(self) -> Data:
        return data_of(self.observations, self.yardstick_seconds)

    @property
    def networks(self) -> tuple[Network, ...]:
        return self._data.networks

    @property
    def costs(self) -> Array:
        """CPU seconds a step of each network, in the reference condition."""
        return self._data.costs


@dataclass(frozen=True)
class Method:
    name: str
    title: str  # one line for people
    learns_from: str  # a campaign; or "networks" or "all", which our own campaign's observations serve as well
    fit: Callable[[Evidence], Estimator]

    @property
    def campaign(self) -> str:
        """Which campaign must have run."""
        return "additive" if self.learns_from in ("networks", "all") else self.learns_from


def evidence_of(profile: Profile, learns_from: str) -> Evidence | None:
    """What a profile offers to a method that learns from this; None where it has nothing of the sort."""
    quiet = [o for o in profile.observations if o.measurement.allocator == "tuned"]
    if learns_from == "networks" and profile.method in ("additive", "networks"):
        found = [o for o in quiet if o.purpose == "network"] or quiet
    elif learns_from == ("all" if profile.method == "additive" else profile.method):
        found = quiet
    else:
        found = []
    return Evidence(tuple(found), profile.yardstick_seconds) if found else None
