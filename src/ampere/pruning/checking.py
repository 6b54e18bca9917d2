"""What pruning really left: original and result are trained in turn, and what that shows corrects the estimate.

    choose widths by the estimate --> train both in turn, 3 s --> inside the budget, and near it? --yes, surely--> done
            ^                                ^                               |            |
            |                                +------- yes, it seems ---------+            | no
            +------------------- estimate again, knowing what both really cost <----------+

What the estimate still gets wrong of the last result is a factor on all that are like it, as far as rounds are sure.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import hypot, sqrt
from random import Random
from statistics import mean, stdev

from ampere.core import Measurement, Network
from ampere.core.errors import AmpereError, DeviceError
from ampere.estimation.estimate import Estimator
from ampere.profiling.experiment import Experiment
from ampere.profiling.observing import merged, one_round
from ampere.profiling.strategies.strategy import Trainer
from ampere.storage.profile import Observation

from .budget import deviations
from .price import Joules
from .pruner import Pruner
from .refitting import joules_of, knowing
from .result import Measured, Pruned

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
