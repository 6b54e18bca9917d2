"""From what was observed to a fitted surrogate."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from ampere.core import Measurement, Network
from ampere.core.errors import ProfileError
from ampere.storage.profile import STEP, Observation, Profile

from .additive import Additive, Answer, Data
from .hyperparameters import Hyperparameters
from .learning import learn
from .normalization import DriftShare, conditions_of, corrected, drift_share_of, to_reference
from .power import Power
from .sequential import Sequential

TYPICAL_SPREAD = {"tuned": 0.025, "system": 0.05}  # of one round around the median of many, relative
PRIOR_ROUNDS = 3.0  # how many rounds' worth of belief the typical spread has against a measurement's own
FLAGGED = 4.0  # a flagged measurement's variance counts this many times
FEWEST_TOLD, MOST_TOLD = 8, 160  # measurements that tell what part of a slowdown networks share
WATTS_DOUBT = "watts_doubt"  # relative, of the power that joules were computed with
VARIANT_DOUBT = 0.02  # a variant is wired a little differently from the network it stands for


def data_of(observations: Sequence[Observation], yardstick_seconds: float) -> Data:
    return _moved(observations, yardstick_seconds, drift_share_in(observations, yardstick_seconds).part)


def drift_share_in(observations: Sequence[Observation], yardstick_seconds: float) -> DriftShare:
    """What part of the yardstick's slowdown networks share, told by their rounds and by each other."""
    within = drift_share_of([o.measurement for o in observations])
    told = [o for o in observations if o.stage == STEP and len(o.measurement.yardsticks) == len(o.measurement.rounds)]
    if len(told) < FEWEST_TOLD:
        return within
    told = told[:: math.ceil(len(told) / MOST_TOLD)]
    data = _moved(told, yardstick_seconds, within.part)
    errors, deviations = Additive(data, Hyperparameters()).leave_one_out()
    conditions = conditions_of([o.measurement for o in told], yardstick_seconds)
    return corrected(within, conditions, errors / data.costs, deviations / data.costs)


def condition_uncertainty(observations: Sequence[Observation], yardstick_seconds: float) -> float:
    """Relative, of all costs alike: they were moved from where they were measured to the reference condition."""
    told = [o.measurement for o in observations if o.measurement.yardsticks]
    if not told:
        return 0.0
    moved = conditions_of(told, yardstick_seconds)
    return drift_share_in(observations, yardstick_seconds).doubt * float(np.sqrt(np.mean(moved**2)))


def _moved(observations: Sequence[Observation], yardstick_seconds: float, sharing: float) -> Data:
    seen = [replace(o, measurement=to_reference(o.measurement, yardstick_seconds, sharing)) for o in observations]
    typical = {allocator: _pooled_spread(seen, allocator) for allocator in TYPICAL_SPREAD}
    return Data(
        networks=tuple(o.network for o in seen),
        costs=np.array([o.measurement.ratio * yardstick_seconds for o in seen]),
        noise=np.array([_noise(o, typical[o.measurement.allocator]) for o in seen]),
        system=np.array([float(o.measurement.allocator == "system") for o in seen]),
    )


def _pooled_spread(observations: Sequence[Observation], allocator: str) -> float:
    spreads = [o.measurement.spread for o in observations if o.measurement.allocator == allocator]
    known = [s for s in spreads if s is not None]
    if len(known) < 5:
        return TYPICAL_SPREAD[allocator]
    return float(np.clip(np.sqrt(np.median(np.square(known)) * 1.5), 0.003, 0.3))


def _noise(observation: Observation, typical: float) -> float:
    """Relative variance of the median ratio."""
    measurement = observation.measurement
    rounds = len(measurement.rounds)
    own = measurement.spread or 0.0
    single = (PRIOR_ROUNDS * typical**2 + (rounds - 1) * own**2) / (PRIOR_ROUNDS + rounds - 1)
    variance = single / rounds * (FLAGGED if measurement.flags else 1.0)
    variance += measurement.conditions.get(WATTS_DOUBT, 0.0) ** 2
    return variance + (VARIANT_DOUBT**2 if observation.purpose in ("layer", "variant") else 0.0)


def counted(observations: Sequence[Observation]) -> bool:
    """Whether a counter read joules. These are learnt for themselves: power differs between layers."""
    return any(o.measurement.joules_rounds for o in observations)


def in_joules(profile: Profile) -> Profile:
    """The same, told in joules: what was learnt from costs in seconds is then learnt from costs in joules."""
    unit = profile.yardstick_joules or 1.0
    observations, fit = expressed_in_joules(profile.observations, unit), profile.joules_fit or profile.fit
    return replace(profile, observations=observations, yardstick_seconds=unit, fit=fit)


def expressed_in_joules(observations: Sequence[Observation], unit: float) -> tuple[Observation, ...]:
    """What a slow counter was not asked about is told at the power of networks that do alike, with its doubt."""
    return tuple(replace(o, measurement=_in_joules(o.measurement, unit)) for o in with_joules(observations))


def with_joules(observations: Sequence[Observation]) -> tuple[Observation, ...]:
    read = [bool(o.measurement.joules_rounds) for o in observations]
    if all(read):
        return tuple(observations)
    seconds = np.array([o.measurement.cpu_seconds for o in observations])
    watts, doubts = power_of(observations).watts([o.network for o in observations], seconds)
    return tuple(
        o if there else replace(o, measurement=_at_power(o.measurement, float(w), float(d)))
        for o, there, w, d in zip(observations, read, watts, doubts, strict=True)
    )


def power_of(observations: Sequence[Observation]) -> Power:
    """Learnt from those whose joules were read."""
    seconds = np.array([o.measurement.cpu_seconds for o in observations])
    watts = np.array([o.measurement.joules for o in observations]) / seconds
    read = np.array([bool(o.measurement.joules_rounds) for o in observations])
    whole = np.array([o.purpose == "network" for o in observations])
    return Power([o.network for o in observations], seconds, watts, read, whole)


def partly_counted(observations: Sequence[Observation]) -> bool:
    """A slow counter is asked about some networks only."""
    return counted(observations) and not all(o.measurement.joules_rounds for o in observations)


def _at_power(measurement: Measurement, watts: float, doubt: float) -> Measurement:
    """Its rounds tell the spread of its time."""
    m = measurement
    joules = watts * m.cpu_seconds
    rounds = tuple(joules * r / m.ratio for r in m.rounds)
    return replace(m, joules=joules, joules_rounds=rounds, conditions={**m.conditions, WATTS_DOUBT: doubt})


def _in_joules(measurement: Measurement, unit: float) -> Measurement:
    m = measurement
    rounds = tuple(joules / unit for joules in m.joules_rounds)
    return replace(m, ratio=m.joules / unit, rounds=rounds, seconds=m.joules, cpu_seconds=m.joules, yardsticks=())


class Surrogate(Protocol):
    """What can be estimated with: seconds of a step, layer by layer, and how sure that is."""

    def answer(self, network: Network, system: bool = False) -> Answer: ...


def fit_additive(profile: Profile) -> Additive:
    """With the hyperparameters that profiling ended with."""
    hyper = Hyperparameters.from_json(profile.fit) if profile.fit else Hyperparameters()
    data = data_of(profile.observations, profile.yardstick_seconds)
    return learn(data, hyper, evaluations=0)


def fit_sequential(profile: Profile) -> Sequential:
    data = data_of(profile.observations, profile.yardstick_seconds)
    return Sequential(data.networks, data.costs)


# Methods that tell what each layer costs, by the name of the campaign that they learn from.
BY_LAYER: dict[str, Callable[[Profile], Surrogate]] = {"additive": fit_additive, "sequential": fit_sequential}


def fit(profile: Profile) -> Surrogate:
    if profile.method not in BY_LAYER:
        raise ProfileError(
            f"a profile made with --method {profile.method} tells nothing about single layers: "
            f"estimate with one of {', '.join(BY_LAYER)}; `ampere validate --methods` shows the others"
        )
    return BY_LAYER[profile.method](profile)
