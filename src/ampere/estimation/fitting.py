"""From normalized costs to a fitted surrogate."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Protocol

import numpy as np

from ampere.core import Network
from ampere.core.errors import ProfileError
from ampere.core.measurement import WALL
from ampere.storage.checks import checked
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
from .sequential import PAPERS_KERNEL, Sequential
from .transfer import Transferred

TYPICAL_SPREAD = {"tuned": 0.025, "system": 0.05}  # relative, of one round around the median of many
PRIOR_ROUNDS = 3.0  # rounds that the typical spread counts for, added to a measurement's own
FLAGGED = 4.0  # factor on the variance of a flagged measurement
FEWEST_FOR_SHARE, MOST_FOR_SHARE = 8, 160  # costs that the drift share is learnt from
MOST_FITTED = 900  # networks: the time of a fit grows with their cube
MOST_LAYERS_FITTED = 6_000  # different layers of all of them: it grows with their square
MOST_ENTRIES_FITTED = 20_000  # different layers of each, summed
ENOUGH_OF_ITS_OWN = 60  # measurements, from which on a profile needs no others to start from
VARIANT_STDDEV = 0.02  # relative: a variant is wired a little differently from the network that it represents


def few_enough(profile: Profile) -> Profile:
    """The profile, or one with as many of its networks, evenly spread over the run, as are fitted in a second."""
    networks = [*dict.fromkeys(o.network for o in profile.observations)]
    count = min(len(networks), MOST_FITTED)
    while True:
        chosen = {networks[i] for i in np.linspace(0, len(networks) - 1, count).astype(int)}
        layers = [layer for network in chosen for layer in {*network.layers}]
        beyond = max(len(layers) / MOST_ENTRIES_FITTED, len({*layers}) / MOST_LAYERS_FITTED)
        if beyond <= 1 or count <= 1:
            break
        count = max(1, min(count - 1, int(count / beyond)))
    if len(chosen) == len(networks):
        return profile
    return replace(profile, observations=tuple(o for o in profile.observations if o.network in chosen))


def data_of(costs: Sequence[NormalizedCost], reference: Reference) -> Data:
    """Training data in seconds of the reference's clock, in the reference condition."""
    return _data_at_reference(costs, reference, drift_share_in(costs, reference).part)


def joules_data_of(costs: Sequence[NormalizedCost], reference: Reference) -> Data:
    """Training data in joules. Where a slow counter read none, power comes from similar networks."""
    if busy_power(costs):  # a counter's joules are in the reference condition already, seconds at a power are not
        share = drift_share_in(costs, reference).part
        costs = [to_reference(c, reference, share) for c in costs]
    read = with_joules(costs)
    spreads = {allocator: _pooled_spread(read, allocator, joules=True) for allocator in TYPICAL_SPREAD}
    return Data(
        networks=tuple(c.network for c in read),
        costs=np.array([c.joules for c in read]),
        noise=np.array([noise_of(c, len(c.joules_rounds), c.joules_spread, spreads[c.allocator]) for c in read]),
        system=np.array([float(c.allocator == "system") for c in read]),
    )


def drift_share_in(costs: Sequence[NormalizedCost], reference: Reference) -> DriftShare:
    """The part of the yardstick's slowdown that networks share, learnt within and between networks."""
    within = drift_share_of(costs)
    paired = [c for c in costs if c.stage == STEP and len(c.yardsticks) == len(c.rounds)]
    if len(paired) < FEWEST_FOR_SHARE:
        return within
    return _between_networks(tuple(paired[:: math.ceil(len(paired) / MOST_FOR_SHARE)]), reference, within)


@lru_cache(maxsize=16)
def _between_networks(paired: tuple[NormalizedCost, ...], reference: Reference, within: DriftShare) -> DriftShare:
    """Kept: a fit and its uncertainty ask for it, and so does each measurement that is compared with an estimate."""
    data = _data_at_reference(paired, reference, within.part)
    errors, deviations = Additive(data, Hyperparameters()).leave_one_out()
    return corrected(within, conditions_of(paired, reference), errors / data.costs, deviations / data.costs)


def condition_uncertainty(costs: Sequence[NormalizedCost], reference: Reference) -> float:
    """Relative uncertainty that all costs share, because they were converted to the reference condition."""
    paired = [c for c in costs if c.yardsticks]
    if not paired:
        return 0.0
    conditions = conditions_of(paired, reference)
    return drift_share_in(costs, reference).stddev * float(np.sqrt(np.mean(conditions**2)))


def _data_at_reference(costs: Sequence[NormalizedCost], reference: Reference, share: float) -> Data:
    moved = [to_reference(c, reference, share) for c in costs]
    spreads = {allocator: _pooled_spread(moved, allocator) for allocator in TYPICAL_SPREAD}
    return Data(
        networks=tuple(c.network for c in moved),
        costs=np.array([c.ratio * reference.seconds for c in moved]),
        noise=np.array([noise_of(c, len(c.rounds), c.spread, spreads[c.allocator]) for c in moved]),
        system=np.array([float(c.allocator == "system") for c in moved]),
    )


def process_spreads(costs: Sequence[NormalizedCost]) -> dict[str, float]:
    """By allocator, the relative standard deviation of a network's cost between processes, or rounds, that train it."""
    return {allocator: _pooled_spread(costs, allocator) for allocator in TYPICAL_SPREAD}


def _pooled_spread(costs: Sequence[NormalizedCost], allocator: str, joules: bool = False) -> float:
    spreads = [c.joules_spread if joules else c.spread for c in costs if c.allocator == allocator]
    known = [s for s in spreads if s is not None]
    if len(known) < 5:
        return TYPICAL_SPREAD[allocator]
    return float(np.clip(np.sqrt(np.median(np.square(known)) * 1.5), 0.003, 0.3))


def noise_of(cost: NormalizedCost, rounds: int, spread: float | None, typical: float) -> float:
    """Relative variance of the median of a number of rounds."""
    own = spread or 0.0
    single = (PRIOR_ROUNDS * typical**2 + (rounds - 1) * own**2) / (PRIOR_ROUNDS + rounds - 1)
    variance = single / rounds * (FLAGGED if cost.flags else 1.0) + cost.watts_uncertainty**2
    return variance + (VARIANT_STDDEV**2 if cost.purpose in ("layer", "variant") else 0.0)


def counted(costs: Sequence[NormalizedCost]) -> bool:
    """Whether joules have a fit of their own, because power differs between layers: a counter read them.

    So it is with the busy time of several threads, from which joules are modelled while wall time guides.
    """
    return any(c.joules_rounds for c in costs) or busy_power(costs)


def busy_power(costs: Sequence[NormalizedCost]) -> bool:
    """Whether joules are modelled from the busy time of several threads: too noisy to be taken network by network."""
    return any(c.clock == WALL and c.yardsticks for c in costs) and not any(c.joules_rounds for c in costs)


def partly_counted(costs: Sequence[NormalizedCost]) -> bool:
    """Whether joules are those of a power that was learnt: a slow counter reads it of some networks only."""
    return counted(costs) and not all(c.joules_rounds for c in costs)


def with_joules(costs: Sequence[NormalizedCost]) -> tuple[NormalizedCost, ...]:
    """All costs with joules. Where no counter read them, power comes from similar networks."""
    if all(c.joules_rounds for c in costs):
        return tuple(costs)
    seconds = np.array([c.guiding_seconds for c in costs])
    watts, uncertainties = power_of(costs).watts([c.network for c in costs], seconds)
    return tuple(
        c if c.joules_rounds else _at_power(c, float(w), float(u))
        for c, w, u in zip(costs, watts, uncertainties, strict=True)
    )


def power_of(costs: Sequence[NormalizedCost]) -> Power:
    """The power of all these networks, learnt from those whose joules were read."""
    seconds = np.array([c.guiding_seconds for c in costs])
    watts = np.array([c.joules for c in costs]) / seconds
    modelled = busy_power(costs)
    read = np.array([bool(c.joules_rounds or (modelled and c.yardsticks)) for c in costs])
    whole = np.array([c.purpose == "network" for c in costs])
    return Power([c.network for c in costs], seconds, watts, read, whole)


def _at_power(cost: NormalizedCost, watts: float, uncertainty: float) -> NormalizedCost:
    """A cost at a given power. Its joules have the relative spread of its time."""
    joules = watts * cost.guiding_seconds
    uncertainty = math.hypot(uncertainty, cost.watts_uncertainty)
    rounds = tuple(joules * r / cost.ratio for r in cost.rounds)
    return replace(cost, joules=joules, joules_rounds=rounds, watts_uncertainty=uncertainty)


class Surrogate(Protocol):
    """A fitted method: it returns the cost of a step, layer by layer, with its uncertainty."""

    def answer(self, network: Network, system: bool = False) -> Answer: ...


def fit_additive(data: Data, hyperparameters: dict[str, object]) -> Additive:
    """The additive surrogate, with the hyperparameters that profiling ended with."""
    with checked("the fit of the profile"):
        hyper = Hyperparameters.from_json(hyperparameters) if hyperparameters else Hyperparameters()
    return learn(data, hyper, evaluations=0)


def fit_sequential(data: Data, hyperparameters: dict[str, object]) -> Sequential:
    """The paper's surrogate. Only the name of its kernel is stored, where it is not the paper's."""
    return Sequential(data.networks, data.costs, str(hyperparameters.get("kernel", PAPERS_KERNEL)))


# Methods that estimate single layers, by the name of the strategy that they learn from.
BY_LAYER: dict[str, Callable[[Data, dict[str, object]], Surrogate]] = {
    "additive": fit_additive,
    "sequential": fit_sequential,
}


def fit(profile: Profile, costs: Sequence[NormalizedCost] | None = None) -> Surrogate:
    """A surrogate of seconds, fitted to the profile's own costs unless others are given."""
    costs = costs_of(profile) if costs is None else costs
    alone = _by_layer(profile)(data_of(costs, reference_of(profile)), dict(profile.fit))
    return _from_sources(profile, alone, [fit(few_enough(source)) for source in sources_of(profile)])


def fit_joules(profile: Profile, costs: Sequence[NormalizedCost] | None = None) -> Surrogate:
    """A surrogate of the joules that a counter read."""
    costs = costs_of(profile) if costs is None else costs
    data = joules_data_of(costs, reference_of(profile))
    alone = _by_layer(profile)(data, dict(profile.joules_fit or profile.fit))
    sources = [(source, costs_of(few_enough(source))) for source in sources_of(profile)]
    # A source whose joules were not read gives its seconds: the factor between devices is learnt anyway.
    known = [fit_joules(source, read) if counted(read) else fit(source, read) for source, read in sources]
    return _from_sources(profile, alone, known)


def sources_of(profile: Profile) -> tuple[Profile, ...]:
    """The profiles that a profile starts from; none once it has enough measurements of its own."""
    return profile.sources if len(profile.observations) < ENOUGH_OF_ITS_OWN else ()


def _from_sources(profile: Profile, alone: Surrogate, sources: Sequence[Surrogate]) -> Surrogate:
    if not sources or not isinstance(alone, Additive):
        return alone
    return Transferred(sources, alone.data, alone)


def _by_layer(profile: Profile) -> Callable[[Data, dict[str, object]], Surrogate]:
    if profile.method not in BY_LAYER:
        raise ProfileError(
            f"a profile made with --method {profile.method} cannot estimate single layers: profile again with "
            f"--method {' or '.join(BY_LAYER)}; `ampere validate --methods` compares the other methods"
        )
    return BY_LAYER[profile.method]
