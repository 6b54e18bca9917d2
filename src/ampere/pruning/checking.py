"""Whether a pruned model meets its budget: original and result are trained in turn, which corrects the estimate.

    choose widths by the estimate --> train both in turn, 3 s --> inside the budget, and near it? --yes--> done
            ^                                ^                               |            |
            |                                +------- not certain -----------+            | no
            +------------------- estimate again, with both measurements <-----------------+

What the estimate still gets wrong about the last result is a factor on all results like it, as far as the rounds are
certain.
"""

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
from typing import TYPE_CHECKING

from ampere.core import Network
from ampere.core.errors import AmpereError, DeviceError, UsageError
from ampere.devices import Device, allocator_on, check_same_meter
from ampere.estimation.estimator import Estimator
from ampere.estimation.normalization import NormalizedCost, normalized, reference_of, to_reference
from ampere.meters import DEFAULT_WATTS_PER_CORE, watts_in
from ampere.models.loading import LoadedModel
from ampere.profiling.experiment import Experiment
from ampere.profiling.observing import one_round
from ampere.profiling.sources import source_of
from ampere.profiling.strategies.strategy import Trainer
from ampere.runtimes.table import lacking
from ampere.storage.profile import Observation, Profile, same_device

from .budget import deviations
from .price import Joules
from .result import Measured, Pruned
from .saving import experiment_of

if TYPE_CHECKING:
    from .pruning import Pruner

CHECKS_AT_LEAST, CHECKS_AT_MOST = 3, 12  # where the first shows that more are needed
CHECK_SECONDS, ALL_SECONDS = 3.0, 22.0  # of one check by the device's clock; of all, with choosing widths again
ROUNDS_AT_LEAST, ROUNDS_AT_MOST = 4, 100  # of one check
NEAR = 0.02  # a result is good if it is below the budget by no more than this share of it
BELOW = 0.003  # the first aim is so far below the budget, since measurements vary a little
CERTAIN = 0.006  # a relative standard deviation of the share that is as good as none
OF_A_MEDIAN = 1.25  # its standard deviation over that of a mean
SPREAD = 0.025  # relative, of rounds that are too few to compute it
MISSED = 0.02  # relative, what the corrected estimate gets wrong about a result that it has seen


@dataclass(frozen=True)
class Check:
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
    check: Check,
) -> Pruned:
    """The best of a few measured results: the most expensive inside the budget, or else the cheapest."""
    margin, allocator = deviations(confidence), check.original.allocator
    rounds, found = Rounds(check, estimator), dict[Network, Pruned]()
    pruned = pruner.pruned(joules, (1 - BELOW) * allowed(joules.estimate(pruner.network).joules), confidence)
    choosing = 0.0
    for number in range(CHECKS_AT_MOST):
        spent = rounds.seconds + choosing
        pruner.progress(min(spent, ALL_SECONDS), ALL_SECONDS, "training original and result in turn")
        measured = rounds.measured(pruned, Random(f"check {number}"))
        budget, result = allowed(measured.joules_before), pruned.networks[1]
        bound = measured.joules_after * (1 + margin * measured.share_relative_stddev)
        found[result] = replace(pruned, measured=measured, budget_joules=budget, bound_joules=bound)
        if pruner.strategy == "flops" or (spent + CHECK_SECONDS > ALL_SECONDS and number + 1 >= CHECKS_AT_LEAST):
            break
        stddev = measured.share_relative_stddev if measured.share_relative_stddev > CERTAIN else 0.0
        low, high = (1 - NEAR) * budget, budget / (1 + margin * CERTAIN)
        if (1 - stddev) * low <= measured.joules_after <= (1 + stddev) * high:
            if not stddev:
                break
            continue  # it may be good, and is measured until that is certain
        began, corrected = time.monotonic(), rounds.estimator()
        belief = MISSED**2 / (MISSED**2 + measured.share_relative_stddev**2)
        factor = (measured.joules_after / corrected.estimate(result, allocator).joules) ** belief
        try:
            corrected_joules = Joules(corrected, allocator, 0.0, pruner.network, factor)
            pruned = pruner.pruned(corrected_joules, sqrt(low * high), confidence)  # the middle of what is good
        except AmpereError:
            break  # no widths meet the budget by the corrected estimate
        choosing += time.monotonic() - began
    inside = [p for p in found.values() if p.inside]
    return max(inside, key=_certain_share) if inside else min(found.values(), key=lambda p: p.share)


def _certain_share(pruned: Pruned) -> float:
    return pruned.share * (1 - pruned.measured.share_relative_stddev if pruned.measured else 1)


class Rounds:
    """All rounds so far. The original takes part in every check, so that drift affects both."""

    def __init__(self, check: Check, estimator: Estimator) -> None:
        self._check, self._estimator = check, estimator
        self._rounds: list[Observation] = []
        self._built: dict[Network, Experiment] = {}
        self.seconds = 0.0  # spent on measuring

    def measured(self, pruned: Pruned, rng: Random) -> Measured:
        """Some more rounds, and the figures of all rounds of the two."""
        both = [self._check.original, self._experiment(pruned)]
        began, spent = self._check.clock(), 0.0
        for done in range(ROUNDS_AT_MOST):
            if done >= ROUNDS_AT_LEAST and spent > CHECK_SECONDS:
                break
            for experiment in rng.sample(both, 2):
                self._rounds += self._round(experiment)
            spent = self._check.clock() - began
        self.seconds += spent
        original, result = (self._of(experiment) for experiment in both)
        before, after = joules_of(self._estimator, original, result)
        return Measured(before, after, hypot(_stddev(original), _stddev(result)), len(result.rounds))

    def _experiment(self, pruned: Pruned) -> Experiment:
        result = pruned.networks[1]
        if result not in self._built:
            self._built[result] = self._check.experiment_of(pruned)
        return self._built[result]

    def estimator(self) -> Estimator:
        """The estimator, fitted again with these rounds."""
        return refitted(self._estimator, self._rounds)

    def _round(self, experiment: Experiment) -> list[Observation]:
        guess = self._estimator.model.answer(experiment.network).seconds
        return one_round(experiment, self._check.device, self._estimator.profile, guess, thorough=False)

    def _of(self, experiment: Experiment) -> NormalizedCost:
        own = [o for o in self._rounds if o.network == experiment.network]
        if not own:
            raise DeviceError("no round gave a usable figure: close other programs and try again, or use --no-check")
        return normalized(own, reference_of(self._estimator.profile))[0]


def _stddev(cost: NormalizedCost) -> float:
    """Relative, of the median of its rounds."""
    rounds = cost.joules_rounds or cost.rounds
    spread = stdev(rounds) / mean(rounds) if len(rounds) >= ROUNDS_AT_LEAST else SPREAD
    return OF_A_MEDIAN * spread / sqrt(len(rounds))


def joules_of(estimator: Estimator, *costs: NormalizedCost) -> list[float]:
    """Joules of an iteration as the estimator expresses them: in its condition and at its watts."""
    reference = reference_of(estimator.profile)
    share = estimator.drift_share.part
    factor = estimator.condition.factor / estimator.own_watts_share
    return [factor * to_reference(cost, reference, share).joules for cost in costs]


def refitted(estimator: Estimator, observations: Sequence[Observation]) -> Estimator:
    """The estimator fitted to more observations of the same device."""
    more = replace(estimator.profile, observations=(*estimator.profile.observations, *observations))
    return estimator.on(more)


def why_unchecked(device: Device, profile: Profile, network: Network) -> str:
    """Why nothing can be measured on the device; "" where it can."""
    if device.spec.startswith("replayed:"):
        return f"{device.spec} is a recording, which cannot train a new network"
    if not same_device(profile.device, device.identity):
        return f"the profile is of another device than {device.spec}"
    description = device.capabilities(profile.setup.runtime)
    if not _by_code(device, profile) and (lacks := lacking(network, description)):
        return f"{device.spec} cannot build {lacks[0]}"
    return ""


@contextmanager
def opened_check(
    loaded: LoadedModel, device: Device, profile: Profile, allocator: str, network: Network | None = None
) -> Iterator[Check]:
    """This machine builds a pruned model with its own code; other devices build both from their layers."""
    original = source_of(loaded, network).original().under(allocator_on(profile.device, allocator))
    if reason := why_unchecked(device, profile, original.network):
        raise UsageError(f"nothing can be measured: {reason}; leave out check=True")
    check_same_meter(device, profile.meter)
    watts, numbers = watts_in(profile.meter.scope) or DEFAULT_WATTS_PER_CORE, count()
    with device.fresh(watts, 1) as workers, TemporaryDirectory() as folder:

        def by_code(pruned: Pruned) -> Experiment:
            return experiment_of(pruned, original, Path(folder) / f"{next(numbers)}.json")

        def by_layers(pruned: Pruned) -> Experiment:
            return _from_layers(replace(original, network=pruned.networks[1]))

        worker = workers[original.allocator]
        if _by_code(device, profile) and loaded.factory:
            yield Check(worker, original, by_code, worker.clock)
        else:
            yield Check(worker, _from_layers(original), by_layers, worker.clock)


def _by_code(device: Device, profile: Profile) -> bool:
    return device.is_local and device.capabilities(profile.setup.runtime).factories


def _from_layers(experiment: Experiment) -> Experiment:
    return replace(experiment, workload={"layers": experiment.network.to_json()})
