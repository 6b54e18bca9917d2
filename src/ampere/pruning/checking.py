"""An estimator and what was measured after it was fitted: in its own terms, and among what it knows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from math import hypot, sqrt
from pathlib import Path
from random import Random
from statistics import mean, stdev
from tempfile import TemporaryDirectory

from ampere.core import Measurement, Network
from ampere.core.errors import AmpereError, DeviceError, UsageError
from ampere.devices import allocator_on, check_same_meter, describe, opened
from ampere.devices.opening import LOCAL
from ampere.estimation.estimate import Estimator, watts_of
from ampere.estimation.fitting import drift_share_in
from ampere.estimation.normalization import to_reference
from ampere.meters import DEFAULT_WATTS_PER_CORE, watts_in
from ampere.models.loading import LoadedModel
from ampere.profiling.capabilities import known
from ampere.profiling.experiment import Experiment
from ampere.profiling.observing import merged, one_round
from ampere.profiling.sources import source_of
from ampere.profiling.strategies.strategy import Trainer
from ampere.runtimes.table import lacking
from ampere.storage.profile import Observation, Profile

from .budget import deviations
from .price import Joules
from .pruning import Pruner
from .result import Measured, Pruned
from .saving import experiment_of


def joules_of(estimator: Estimator, *measurements: Measurement) -> list[float]:
    """Of an iteration, as estimates tell them: in the condition and at the watts that they speak of."""
    profile = estimator.profile
    sharing = drift_share_in(profile.observations, profile.yardstick_seconds).part
    factor = estimator.condition.factor * estimator.watts / watts_of(profile)
    return [factor * to_reference(m, profile.yardstick_seconds, sharing).joules for m in measurements]


def knowing(estimator: Estimator, observations: Sequence[Observation]) -> Estimator:
    """The same, fitted to more observations of the same device."""
    more = replace(estimator.profile, observations=(*estimator.profile.observations, *observations))
    return Estimator(more, watts_in(estimator.meter.scope))


# What pruning really left: original and result are trained in turn, and what that shows corrects the estimate.
#
#     choose widths by the estimate --> train both in turn, 3 s --> inside the budget, and near it? --yes, surely--> done
#             ^                                ^                               |            |
#             |                                +------- yes, it seems ---------+            | no
#             +------------------- estimate again, knowing what both really cost <----------+
#
# What the estimate still gets wrong of the last result is a factor on all that are like it, as far as rounds are sure.

CHECKS_AT_LEAST, CHECKS_AT_MOST = 3, 12  # where the first shows that it is needed
CHECK_SECONDS, ALL_SECONDS = 3.0, 22.0  # of one check by the device's clock; of all, with choosing widths again
ROUNDS_AT_LEAST, ROUNDS_AT_MOST = 4, 100  # of one check
NEAR = 0.02  # below the budget by no more than this share of it, a result is good
BELOW = 0.003  # what is aimed below the budget at first, since measuring gives a little more or less
SURE = 0.006  # so little doubt of the share, relative, is as good as none
OF_A_MEDIAN = 1.25  # its deviation over that of a mean
SPREAD = 0.025  # of rounds, relative, where there are too few to tell
MISSED = 0.02  # relative, what the corrected estimate gets wrong of a result that it has seen


@dataclass(frozen=True)
class Place:
    """Where original and result are trained, and how they are built there."""

    device: Trainer
    original: Experiment
    experiment_of: Callable[[Pruned], Experiment]
    clock: Callable[[], float] = time.monotonic


def prune_and_check(
    pruner: Pruner,
    joules: Joules,
    estimator: Estimator,
    allowed: Callable[[float], float],  # joules of an iteration now -> joules that are allowed
    confidence: float,
    place: Place,
) -> Pruned:
    """The best of a few results that were measured: the dearest inside the budget, or else the cheapest."""
    sure, allocator = deviations(confidence), place.original.allocator
    seen, found = Seen(place, estimator), dict[Network, Pruned]()
    pruned = pruner.pruned(joules, (1 - BELOW) * allowed(joules.estimate(pruner.network).joules), confidence)
    choosing = 0.0
    for check in range(CHECKS_AT_MOST):
        spent = seen.seconds + choosing
        pruner.progress(min(spent, ALL_SECONDS), ALL_SECONDS, "training original and result in turn")
        measured = seen.measured(pruned, Random(f"check {check}"))
        budget, result = allowed(measured.joules_before), pruned.networks[1]
        bound = measured.joules_after * (1 + sure * measured.share_doubt)
        found[result] = replace(pruned, measured=measured, budget_joules=budget, bound_joules=bound)
        if pruner.strategy == "flops" or (spent + CHECK_SECONDS > ALL_SECONDS and check + 1 >= CHECKS_AT_LEAST):
            break
        doubt = measured.share_doubt if measured.share_doubt > SURE else 0.0
        low, high = (1 - NEAR) * budget, budget / (1 + sure * SURE)
        if (1 - doubt) * low <= measured.joules_after <= (1 + doubt) * high:
            if not doubt:
                break
            continue  # it may be good, and is measured on until that is certain
        began, corrected = time.monotonic(), seen.estimator()
        believed = MISSED**2 / (MISSED**2 + measured.share_doubt**2)
        factor = (measured.joules_after / corrected.estimate(result, allocator).joules) ** believed
        try:
            corrected_joules = Joules(corrected, allocator, 0.0, pruner.network, factor)
            pruned = pruner.pruned(corrected_joules, sqrt(low * high), confidence)  # the middle of what is good
        except AmpereError:
            break  # what the corrected estimate asks for cannot be had
        choosing += time.monotonic() - began
    inside = [p for p in found.values() if p.inside]
    return max(inside, key=_surely) if inside else min(found.values(), key=lambda p: p.share)


def _surely(pruned: Pruned) -> float:
    """Its share, as far as that is certain."""
    return pruned.share * (1 - pruned.measured.share_doubt if pruned.measured else 1)


class Seen:
    """All rounds so far. The original takes part in every check, so what drifts meets both."""

    def __init__(self, place: Place, estimator: Estimator) -> None:
        self._place, self._estimator = place, estimator
        self._rounds: list[Observation] = []
        self._built: dict[Network, Experiment] = {}
        self.seconds = 0.0  # of measuring

    def measured(self, pruned: Pruned, rng: Random) -> Measured:
        """Some rounds more, and what all rounds of the two tell."""
        both = [self._place.original, self._experiment(pruned)]
        began, spent = self._place.clock(), 0.0
        for done in range(ROUNDS_AT_MOST):
            if done >= ROUNDS_AT_LEAST and spent > CHECK_SECONDS:
                break
            for experiment in rng.sample(both, 2):
                self._rounds += self._round(experiment)
            spent = self._place.clock() - began
        self.seconds += spent
        whole, left = (self._of(experiment) for experiment in both)
        before, after = joules_of(self._estimator, whole, left)
        return Measured(before, after, hypot(_doubt(whole), _doubt(left)), len(left.rounds))

    def _experiment(self, pruned: Pruned) -> Experiment:
        result = pruned.networks[1]
        if result not in self._built:
            self._built[result] = self._place.experiment_of(pruned)
        return self._built[result]

    def estimator(self) -> Estimator:
        """With what was seen here among what it knows."""
        return knowing(self._estimator, merged(self._rounds))

    def _round(self, experiment: Experiment) -> list[Observation]:
        guess = self._estimator.model.answer(experiment.network).seconds
        return one_round(experiment, self._place.device, self._estimator.profile, guess, thorough=False)

    def _of(self, experiment: Experiment) -> Measurement:
        own = [o for o in self._rounds if o.network == experiment.network]
        if not own:
            raise DeviceError("no round gave a usable figure: close other programs and try again, or use --no-check")
        return merged(own)[0].measurement


def _doubt(measurement: Measurement) -> float:
    """Of the median of its rounds, relative."""
    rounds = measurement.joules_rounds or measurement.rounds
    spread = stdev(rounds) / mean(rounds) if len(rounds) >= ROUNDS_AT_LEAST else SPREAD
    return OF_A_MEDIAN * spread / sqrt(len(rounds))


# Whether original and result can be trained on a device, and how they get there.


def why_not(device: str, profile: Profile, network: Network) -> str:
    """Why nothing can be measured there; "" where it can."""
    if device.startswith("replayed:"):
        return f"{device} is a recording, which can train nothing new"
    if describe(device, DEFAULT_WATTS_PER_CORE).identity["id"] != profile.device["id"]:
        return f"the profile is of another device than {device}, which is not at hand"
    description = known(device, profile.setup.runtime)
    if not _by_code(device, profile) and (lacks := lacking(network, description)):
        return f"{device} cannot build {lacks[0]}"
    return ""


@contextmanager
def opened_place(loaded: LoadedModel, device: str, profile: Profile, allocator: str) -> Iterator[Place]:
    """Here a pruned model is built by its own code; elsewhere, original and result from their layers."""
    original = source_of(loaded).original().under(allocator_on(profile.device, allocator))
    if reason := why_not(device, profile, original.network):
        raise UsageError(f"nothing can be measured: {reason}; leave out check=True")
    check_same_meter(device, profile.meter)
    watts, numbers = watts_in(profile.meter.scope) or DEFAULT_WATTS_PER_CORE, count()
    with opened(device, watts, 1) as devices, TemporaryDirectory() as folder:

        def by_code(pruned: Pruned) -> Experiment:
            return experiment_of(pruned, loaded, original, Path(folder) / f"{next(numbers)}.json")

        def by_layers(pruned: Pruned) -> Experiment:
            return _described(replace(original, network=pruned.networks[1]))

        there = devices[original.allocator]
        if _by_code(device, profile):
            yield Place(there, original, by_code, there.clock)
        else:
            yield Place(there, _described(original), by_layers, there.clock)


def _by_code(device: str, profile: Profile) -> bool:
    return device == LOCAL and known(device, profile.setup.runtime).factories


def _described(experiment: Experiment) -> Experiment:
    return replace(experiment, subject={"layers": experiment.network.to_json()})
