"""Estimates held against real training, beside every baseline, on networks that were not used in profiling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from ampere.baselines import BASELINES
from ampere.estimation import Z90, Estimator
from ampere.fitting import data_of
from ampere.network import Meter, Network
from ampere.profiles.profile import Observation, Profile
from ampere.profiling.experiment import Experiment
from ampere.profiling.loop import Trainer
from ampere.profiling.merging import merged
from ampere.profiling.observing import observation, request
from ampere.profiling.sources import Source
from ampere.surrogate.features import Array
from ampere.yardstick import in_reference, sharing_of

ROUNDS = 4  # of each of the two independent measurements of a network


@dataclass(frozen=True)
class Row:
    """One network: joules an iteration, measured twice and estimated by every method."""

    network: str
    actual: float
    again: float
    stddev: float
    estimates: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        return {"network": self.network, "actual": self.actual, "again": self.again, **self.estimates}


@dataclass(frozen=True)
class Validation:
    model: str
    rows: tuple[Row, ...]
    profiling_seconds: float
    meter: Meter
    allocator: str
    device: str

    @property
    def mape(self) -> dict[str, float]:
        names = self.rows[0].estimates if self.rows else {}
        return {n: float(np.mean([abs(r.estimates[n] / r.actual - 1) for r in self.rows])) for n in names}

    @property
    def repeatability_mape(self) -> float:
        """How far a second, independent measurement of the same networks is from the first."""
        return float(np.mean([abs(r.again / r.actual - 1) for r in self.rows]))

    @property
    def coverage90(self) -> float:
        return float(np.mean([abs(r.estimates["additive"] - r.actual) <= Z90 * r.stddev for r in self.rows]))

    def to_json(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "networks": len(self.rows),
            "mape": self.mape,
            "repeatability_mape": self.repeatability_mape,
            "coverage90": self.coverage90,
            "profiling_seconds": self.profiling_seconds,
            "meter": self.meter.to_json(),
            "allocator": self.allocator,
            "device": self.device,
            "rows": [row.to_json() for row in self.rows],
        }


def unseen(source: Source, profile: Profile, count: int, seed: int) -> list[Experiment]:
    """Random networks of the source that the profile never saw."""
    rng = Random(f"validate {seed}")
    known: set[tuple[object, ...]] = {o.network.layers for o in profile.observations}
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
) -> list[tuple[Observation, Observation]]:
    """Two independent measurements of each: rounds shuffled within each half, the halves one after the other."""
    estimator = Estimator(profile)
    halves: list[dict[int, list[Observation]]] = []
    total, done, rng = 2 * rounds * len(experiments), 0, Random(seed)
    for _ in range(2):
        seen: dict[int, list[Observation]] = {i: [] for i in range(len(experiments))}
        for _ in range(rounds):
            order = list(range(len(experiments)))
            rng.shuffle(order)
            for i in order:
                seen[i] += _measured(experiments[i], device, profile, estimator)
                done += 1
                on_progress(done, total)
        halves.append(seen)
    both = [i for i in range(len(experiments)) if all(half[i] for half in halves)]
    return [(merged(halves[0][i])[0], merged(halves[1][i])[0]) for i in both]


def _measured(experiment: Experiment, device: Trainer, profile: Profile, estimator: Estimator) -> list[Observation]:
    guess = estimator.model.answer(experiment.network).seconds
    block = device.block(**request(experiment, profile.setup, guess, thorough=True))
    seen = observation(experiment, block, profile.meter, profile.yardstick_seconds)
    return [] if seen is None else [seen]


def compare(
    name: str, pairs: Sequence[tuple[Observation, Observation]], profile: Profile, allocator: str
) -> Validation:
    estimator = Estimator(profile)
    sharing = sharing_of([o.measurement for o in profile.observations])
    measured = [[in_reference(o.measurement, profile.yardstick_seconds, sharing) for o in pair] for pair in pairs]
    networks = [first.network for first, _ in pairs]
    ours = [estimator.estimate(network, allocator) for network in networks]
    rivals = {method: estimator.watts * seconds for method, seconds in baselines(profile, networks).items()}
    rows = tuple(
        Row(
            network=network.name or " ".join(f"{x.channels_in}-{x.channels_out}" for x in network.layers),
            actual=first.joules,
            again=second.joules,
            stddev=e.stddev,
            estimates={"additive": e.joules, **{method: float(v[i]) for method, v in rivals.items()}},
        )
        for i, (network, (first, second), e) in enumerate(zip(networks, measured, ours, strict=True))
    )
    device = str(profile.device.get("cpu", profile.device["id"]))
    return Validation(name, rows, profile.profiling_seconds, profile.meter, allocator, device)


def baselines(profile: Profile, networks: Sequence[Network]) -> dict[str, Array]:
    """Each rival on the measurements that serve it best: least squares on all, FLOPs on whole networks only."""
    quiet = [o for o in profile.observations if o.measurement.allocator == "tuned"]
    whole = [o for o in quiet if o.purpose == "network"]
    answers = {}
    for method, fit in BASELINES.items():
        data = data_of(quiet if method == "physics" else whole or quiet, profile.yardstick_seconds)
        answers[method] = fit(data.networks, data.costs)(networks)
    return answers
