"""From normalized costs to a fitted surrogate."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from ampere.core import Network
from ampere.core.errors import ProfileError
from ampere.storage.profile import STEP, Profile

from .additive import Additive, Answer, Data
from .hyperparameters import Hyperparameters
from .learning import learn
from .normalization import (
    DriftShare,
    NormalizedCost,
    Reference,
    conditions_of,
    corrected,
    costs_of,
    drift_share_of,
    reference_of,
    to_reference,
)
from .power import Power
from .sequential import Sequential

TYPICAL_SPREAD = {"tuned": 0.025, "system": 0.05}  # of one round around the median of many, relative
PRIOR_ROUNDS = 3.0  # how many rounds' worth of belief the typical spread has against a measurement's own
FLAGGED = 4.0  # a flagged measurement's variance counts this many times
FEWEST_FOR_SHARE, MOST_FOR_SHARE = 8, 160  # costs that the drift share is learnt from
VARIANT_STDDEV = 0.02  # a variant is wired a little differently from the network it stands for


def data_of(costs: Sequence[NormalizedCost], reference: Reference) -> Data:
    """Training data in seconds of the guiding clock, in the reference condition."""
    return _moved(costs, reference, drift_share_in(costs, reference).part)


def joules_data_of(costs: Sequence[NormalizedCost]) -> Data:
    """Training data in joules. What a slow counter did not read has the power of networks that do alike."""
    read = with_joules(costs)
    spreads = {allocator: _pooled_spread(read, allocator, joules=True) for allocator in TYPICAL_SPREAD}
    return Data(
        networks=tuple(c.network for c in read),
        costs=np.array([c.joules for c in read]),
        noise=np.array([_noise(c, len(c.joules_rounds), c.joules_spread, spreads[c.allocator]) for c in read]),
        system=np.array([float(c.allocator == "system") for c in read]),
    )


def drift_share_in(costs: Sequence[NormalizedCost], reference: Reference) -> DriftShare:
    """What part of the yardstick's slowdown networks share, learnt from their rounds and from each other."""
    within = drift_share_of(costs)
    paired = [c for c in costs if c.stage == STEP and len(c.yardsticks) == len(c.rounds)]
    if len(paired) < FEWEST_FOR_SHARE:
        return within
    paired = paired[:: math.ceil(len(paired) / MOST_FOR_SHARE)]
    data = _moved(paired, reference, within.part)
    errors, deviations = Additive(data, Hyperparameters()).leave_one_out()
    return corrected(within, conditions_of(paired, reference), errors / data.costs, deviations / data.costs)


def condition_uncertainty(costs: Sequence[NormalizedCost], reference: Reference) -> float:
    """Relative, of all costs alike: they were moved from where they were measured to the reference condition."""
    paired = [c for c in costs if c.yardsticks]
    if not paired:
        return 0.0
    moved = conditions_of(paired, reference)
    return drift_share_in(costs, reference).stddev * float(np.sqrt(np.mean(moved**2)))


def _moved(costs: Sequence[NormalizedCost], reference: Reference, share: float) -> Data:
    moved = [to_reference(c, reference, share) for c in costs]
    spreads = {allocator: _pooled_spread(moved, allocator) for allocator in TYPICAL_SPREAD}
    return Data(
        networks=tuple(c.network for c in moved),
        costs=np.array([c.ratio * reference.seconds for c in moved]),
        noise=np.array([_noise(c, len(c.rounds), c.spread, spreads[c.allocator]) for c in moved]),
        system=np.array([float(c.allocator == "system") for c in moved]),
    )


def _pooled_spread(costs: Sequence[NormalizedCost], allocator: str, joules: bool = False) -> float:
    spreads = [c.joules_spread if joules else c.spread for c in costs if c.allocator == allocator]
    known = [s for s in spreads if s is not None]
    if len(known) < 5:
        return TYPICAL_SPREAD[allocator]
    return float(np.clip(np.sqrt(np.median(np.square(known)) * 1.5), 0.003, 0.3))


def _noise(cost: NormalizedCost, rounds: int, spread: float | None, typical: float) -> float:
    """Relative variance of the median of so many rounds."""
    own = spread or 0.0
    single = (PRIOR_ROUNDS * typical**2 + (rounds - 1) * own**2) / (PRIOR_ROUNDS + rounds - 1)
    variance = single / rounds * (FLAGGED if cost.flags else 1.0) + cost.watts_uncertainty**2
    return variance + (VARIANT_STDDEV**2 if cost.purpose in ("layer", "variant") else 0.0)


def counted(costs: Sequence[NormalizedCost]) -> bool:
    """Whether a counter read joules. These are learnt for themselves: power differs between layers."""
    return any(c.joules_rounds for c in costs)


def partly_counted(costs: Sequence[NormalizedCost]) -> bool:
    """A slow counter reads some networks only."""
    return counted(costs) and not all(c.joules_rounds for c in costs)


def with_joules(costs: Sequence[NormalizedCost]) -> tuple[NormalizedCost, ...]:
    """All costs with joules: those that no counter read at the power of networks that do alike."""
    if all(c.joules_rounds for c in costs):
        return tuple(costs)
    seconds = np.array([c.busy_seconds for c in costs])
    watts, uncertainties = power_of(costs).watts([c.network for c in costs], seconds)
    return tuple(
        c if c.joules_rounds else _at_power(c, float(w), float(u))
        for c, w, u in zip(costs, watts, uncertainties, strict=True)
    )


def power_of(costs: Sequence[NormalizedCost]) -> Power:
    """Learnt from those whose joules were read."""
    seconds = np.array([c.busy_seconds for c in costs])
    watts = np.array([c.joules for c in costs]) / seconds
    read = np.array([bool(c.joules_rounds) for c in costs])
    whole = np.array([c.purpose == "network" for c in costs])
    return Power([c.network for c in costs], seconds, watts, read, whole)


def _at_power(cost: NormalizedCost, watts: float, uncertainty: float) -> NormalizedCost:
    """The spread of its joules is that of its time."""
    joules = watts * cost.busy_seconds
    rounds = tuple(joules * r / cost.ratio for r in cost.rounds)
    return replace(cost, joules=joules, joules_rounds=rounds, watts_uncertainty=uncertainty)


class Surrogate(Protocol):
    """What can be estimated with: the cost of a step, layer by layer, and its uncertainty."""

    def answer(self, network: Network, system: bool = False) -> Answer: ...


def fit_additive(data: Data, hyperparameters: dict[str, object]) -> Additive:
    """With the hyperparameters that profiling ended with."""
    hyper = Hyperparameters.from_json(hyperparameters) if hyperparameters else Hyperparameters()
    return learn(data, hyper, evaluations=0)


def fit_sequential(data: Data, hyperparameters: dict[str, object]) -> Sequential:
    return Sequential(data.networks, data.costs)


# Methods that say what each layer costs, by the name of the strategy that they learn from.
BY_LAYER: dict[str, Callable[[Data, dict[str, object]], Surrogate]] = {
    "additive": fit_additive,
    "sequential": fit_sequential,
}


def fit(profile: Profile, costs: Sequence[NormalizedCost] | None = None) -> Surrogate:
    """Learnt in seconds, from the profile's own costs unless others are given."""
    known = costs_of(profile) if costs is None else costs
    return _by_layer(profile)(data_of(known, reference_of(profile)), dict(profile.fit))


def fit_joules(profile: Profile, costs: Sequence[NormalizedCost] | None = None) -> Surrogate:
    """Learnt in joules that a counter read."""
    known = costs_of(profile) if costs is None else costs
    return _by_layer(profile)(joules_data_of(known), dict(profile.joules_fit or profile.fit))


def _by_layer(profile: Profile) -> Callable[[Data, dict[str, object]], Surrogate]:
    if profile.method not in BY_LAYER:
        raise ProfileError(
            f"a profile made with --method {profile.method} says nothing about single layers: "
            f"estimate with one of {', '.join(BY_LAYER)}; `ampere validate --methods` shows the others"
        )
    return BY_LAYER[profile.method]
