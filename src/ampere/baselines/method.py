"""A baseline method: its name, what it learns from, and how it is fitted."""

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
    """The observations that a method is fitted to."""

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
    learns_from: str  # a profiling strategy; or "networks" or "all", for which Ampere's own strategy is enough
    fit: Callable[[Evidence], Estimator]
    unavailable: Callable[[], str] = lambda: ""  # why it cannot run here and what to do; empty where it can

    @property
    def strategy(self) -> str:
        """The profiling strategy whose measurements it needs."""
        return "additive" if self.learns_from in ("networks", "all") else self.learns_from


def evidence_of(profile: Profile, learns_from: str) -> Evidence | None:
    """The observations of a profile that such a method can learn from; None where there are none."""
    tuned = [o for o in profile.observations if o.measurement.allocator == "tuned"]
    if learns_from == "networks" and profile.method in ("additive", "networks"):
        found = [o for o in tuned if o.purpose == "network"] or tuned
    elif learns_from == ("all" if profile.method == "additive" else profile.method):
        found = tuned
    else:
        found = []
    return Evidence(tuple(found), profile.yardstick_seconds) if found else None
