"""Validation: the estimates of every method compared with real training, on networks that no profile saw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from random import Random
from typing import Any

import numpy as np

from ampere.baselines import METHODS
from ampere.baselines.answers import answers, measured_for, unavailable
from ampere.core import Measurement, Meter, TrainingSetup
from ampere.devices import VariantDied, VariantFailed
from ampere.estimation.estimator import Estimator
from ampere.estimation.fitting import busy_power, drift_share_in, with_joules
from ampere.estimation.interval import interval90
from ampere.estimation.normalization import NormalizedCost, costs_of, normalized, reference_of, to_reference
from ampere.profiling.experiment import Experiment
from ampere.profiling.observing import SETTLED, one_round
from ampere.profiling.sources import Source
from ampere.profiling.strategies.strategy import Trainer
from ampere.storage.profile import Observation, Profile

Rounds = tuple[Observation, ...]  # measurements of one network
Pair = tuple[Rounds, Rounds]  # two independent measurements of one network

ROUNDS = 4  # of each of the two independent measurements of a network


@dataclass(frozen=True)
class Row:
    """One network: joules per iteration, measured twice and estimated by every method."""

    network: str
    actual: float
    repeat: float
    stddevs: dict[str, float]  # of the methods that have them
    estimates: dict[str, float]
    in_loops: float | None = None  # measured as the paper's method measures, where that method takes part

    def actual_for(self, method: str) -> float:
        return measured_for(method, self.actual, self.in_loops)

    def to_json(self) -> dict[str, Any]:
        both = {} if self.in_loops is None else {"actual_in_loops": self.in_loops}
        return {"network": self.network, "actual": self.actual, **both, "repeat": self.repeat, **self.estimates}


@dataclass(frozen=True)
class Validation:
    model: str
    rows: tuple[Row, ...]
    profiling_seconds: float
    meter: Meter
    allocator: str
    device: str
    seconds: dict[str, float] = field(default_factory=dict)  # of profiling, by method
    left_out: tuple[str, ...] = ()  # networks that could not be trained, each with the reason
    measurements: dict[str, int] = field(default_factory=dict)  # that each method learnt from
    unavailable: dict[str, str] = field(default_factory=dict)  # methods that cannot run here: why, and what to do
    own_code: bool = False  # whether the networks are a user's own code, in several sizes
    setup: TrainingSetup = field(default_factory=TrainingSetup)  # how they were trained

    @property
    def method(self) -> str:
        """The main profile's own."""
        return next(iter(self.rows[0].estimates), "") if self.rows else ""

    @property
    def mape(self) -> dict[str, float]:
        names = self.rows[0].estimates if self.rows else {}
        return {n: float(np.mean([abs(r.estimates[n] / r.actual_for(n) - 1) for r in self.rows])) for n in names}

    @property
    def repeatability_mape(self) -> float:
        """How far a second, independent measurement of the same networks is from the first."""
        return float(np.mean([abs(r.repeat / r.actual - 1) for r in self.rows]))

    @property
    def coverage(self) -> dict[str, float]:
        """How many networks lie in the 90 % interval of each method that has one."""
        known = self.rows[0].stddevs if self.rows else {}
        inside: dict[str, list[bool]] = {n: [] for n in known}
        for row, n in product(self.rows, known):
            low, high = interval90(row.estimates[n], row.stddevs[n])
            inside[n].append(low <= row.actual_for(n) <= high)
        return {name: float(np.mean(within)) for name, within in inside.items()}

    @property
    def coverage90(self) -> float:
        """The coverage of the main profile's method."""
        return self.coverage.get(self.method, float("nan"))

    def to_json(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "networks": len(self.rows),
            "mape": self.mape,
            "repeatability_mape": self.repeatability_mape,
            "coverage90": self.coverage90,
            "coverage90_by_method": self.coverage,
            "profiling_seconds": self.profiling_seconds,
            "profiling_seconds_by_method": self.seconds,
            "measurements_by_method": self.measurements,
            "meter": self.meter.to_json(),
            "allocator": self.allocator,
            "setup": self.setup.to_json(),
            "device": self.device,
            "left_out": list(self.left_out),
            "unavailable": self.unavailable,
            "own_code": self.own_code,
            "rows": [row.to_json() for row in self.rows],
        }


def unseen(source: Source, profiles: Sequence[Profile], count: int, seed: int) -> list[Experiment]:
    """Random networks of the source that no profile ever saw."""
    rng = Random(f"validate {seed}")
    known: set[tuple[object, ...]] = {o.network.layers for profile in profiles for o in profile.observations}
    found: list[Experiment] = []
    for _ in range(20 * count):
        experiment = source.sample(rng)
        if experiment.network.layers not in known:
            known.add(experiment.network.layers)
            found.append(experiment)
        if len(found) == count:
            break
    return found


def measure_twice(
    experiments: Sequence[Experiment],
    device: Trainer,
    profile: Profile,
    seed: int,
    on_progress: Callable[[int, int], None],
    rounds: int = ROUNDS,
    left_out: dict[int, str] | None = None,
) -> list[Pair]:
    """Two independent measurements of each: rounds shuffled within each half, the halves one after the other.

    `left_out` collects what cannot be trained, by its number, with the reason; without it that is an error.
    """
    estimator = Estimator(profile)
    given_up = {} if left_out is None else left_out
    halves: list[dict[int, list[Observation]]] = []
    total, done, rng = 2 * rounds * len(experiments), 0, Random(seed)
    for _ in range(2):
        seen: dict[int, list[Observation]] = {i: [] for i in range(len(experiments))}
        for _ in range(rounds):
            order = list(range(len(experiments)))
            rng.shuffle(order)
            for i in order:
                if i not in given_up:
                    guess = estimator.model.answer(experiments[i].network).seconds
                    try:
                        seen[i] += one_round(experiments[i], device, profile, guess)
                    except (VariantDied, VariantFailed) as error:
                        if left_out is None:
                            raise
                        given_up[i] = str(error)
                done += 1
                on_progress(done, total)
        halves.append(seen)
    both = [i for i in range(len(experiments)) if i not in given_up and all(half[i] for half in halves)]
    return [(tuple(halves[0][i]), tuple(halves[1][i])) for i in both]


class InLoops:
    """A worker that trains every block as a loop between yardsticks that settle, as the paper's variants are trained.

    Right after a large network a yardstick step takes longer, so steps that are paired one by one look cheaper.
    """

    def __init__(self, worker: Trainer) -> None:
        self._worker = worker

    def block(self, workload: Mapping[str, Any], setup: TrainingSetup, **how: Any) -> Measurement:
        return self._worker.block(workload, setup, **{**how, **SETTLED, "iterations": 2 * how["iterations"]})


def cost_of(rounds: Rounds, profile: Profile) -> NormalizedCost:
    """All rounds of one network, at the profile's yardstick."""
    return normalized(rounds, reference_of(profile))[0]


def _measured(costs: Sequence[NormalizedCost]) -> Sequence[NormalizedCost]:
    """The measured networks. Busy time of several threads is too noisy by itself: their power is learnt from all."""
    return with_joules(costs) if busy_power(costs) else costs


def compare(
    name: str,
    pairs: Sequence[Pair],
    profile: Profile,
    allocator: str,
    others: Sequence[Profile] = (),
    methods: Sequence[str] | None = None,
    in_loops: Sequence[Pair] = (),
) -> Validation:
    """Compares the methods that can learn from the profiles with what was measured; all of them, or the named ones.

    `in_loops` are the same networks, or some of them, trained in loops: what the paper's method is held against.
    """
    reference = reference_of(profile)
    share = drift_share_in(costs_of(profile), reference).part

    def at_reference(rounds: Sequence[Rounds]) -> Sequence[NormalizedCost]:
        return _measured([to_reference(cost_of(each, profile), reference, share) for each in rounds])

    measured = [*zip(*map(at_reference, zip(*pairs, strict=True)), strict=True)]
    networks = [first[0].network for first, _ in pairs]
    loops = {cost.network: cost.joules for cost in at_reference([rounds for rounds, _ in in_loops])}
    estimates, seconds, counts = {}, {}, {}
    for known in (profile, *others):  # a profile made for a method replaces one that merely serves it
        found = answers(known, networks, allocator, profile.yardstick_seconds, methods or ())
        estimates.update(found)
        seconds.update(dict.fromkeys(found, known.profiling_seconds))
        counts.update(dict.fromkeys(found, len(known.observations)))
    own = next(iter(estimates))
    estimates = {m: answer for m, answer in estimates.items() if methods is None or m in (own, *methods)}
    rows = tuple(
        Row(
            network=network.name or " ".join(f"{x.channels_in}-{x.channels_out}" for x in network.layers),
            actual=first.joules,
            repeat=second.joules,
            stddevs={m: float(a.stddevs[i]) for m, a in estimates.items() if a.stddevs is not None},
            estimates={m: float(a.joules[i]) for m, a in estimates.items()},
            in_loops=loops.get(network),
        )
        for i, (network, (first, second)) in enumerate(zip(networks, measured, strict=True))
    )
    device = profile.device_name
    kept = {method: seconds[method] for method in estimates}
    strategies = {known.method for known in (profile, *others)}
    missing = unavailable(slow=methods is not None)
    missing = {m: why for m, why in missing.items() if methods is not None or METHODS[m].strategy in strategies}
    return Validation(
        name,
        rows,
        profile.profiling_seconds,
        profile.meter,
        allocator,
        device,
        kept,
        measurements={method: counts[method] for method in estimates},
        unavailable=missing,
        setup=profile.setup,
    )
