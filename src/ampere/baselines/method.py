"""A baseline method: its name, what it learns from, and how it is fitted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ampere.core import Network
from ampere.estimation.features import Array
from ampere.estimation.fitting import data_of, joules_data_of
from ampere.estimation.normalization import costs_of, reference_of
from ampere.storage.profile import Profile

Estimator = Callable[[Sequence[Network]], Array]  # networks -> CPU seconds a step, in the reference condition


@dataclass(frozen=True)
class Evidence:
    """What a method is fitted to: networks, or stages of them, and what each costs in the reference condition."""

    networks: tuple[Network, ...]
    stages: tuple[str, ...]
    costs: Array  # seconds of the guiding clock, or joules where a counter read them
    in_joules: bool = False


@dataclass(frozen=True)
class Method:
    name: str
    title: str  # one line for people
    learns_from: str  # a profiling strategy; or "networks" or "all", for which Ampere's own strategy is enough
    fit: Callable[[Evidence], Estimator]
    unavailable: Callable[[], str] = lambda: ""  # why it cannot run here and what to do; empty where it can
    slow: bool = False  # takes seconds to estimate, so it takes part only where it is named

    @property
    def strategy(self) -> str:
        """The profiling strategy whose measurements it needs."""
        return "additive" if self.learns_from in ("networks", "all") else self.learns_from


def evidence_of(profile: Profile, learns_from: str, in_joules: bool = False) -> Evidence | None:
    """The costs in a profile that such a method can learn from; None where there are none."""
    tuned = [c for c in costs_of(profile) if c.allocator == "tuned"]
    if learns_from == "networks" and profile.method in ("additive", "networks"):
        found = [c for c in tuned if c.purpose == "network"] or tuned
    elif learns_from == ("all" if profile.method == "additive" else profile.method):
        found = tuned
    else:
        found = []
    if not found:
        return None
    reference = reference_of(profile)
    data = joules_data_of(found, reference) if in_joules else data_of(found, reference)
    return Evidence(data.networks, tuple(c.stage for c in found), data.costs, in_joules)
