"""What pruning really left: original and result are trained in turn, and what that shows corrects the estimate.

    choose widths by the estimate --> train both in turn, some seconds --> inside the budget, and near it: done
            ^                                                                     | no
            +---------- estimate again, knowing what both really cost <-----------+

What the estimate still gets wrong of the last result is a factor on all that are like it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import hypot, sqrt
from random import Random

from ampere.errors import AmpereError, DeviceError
from ampere.estimation import Estimator
from ampere.network import Measurement
from ampere.profiles.profile import Observation
from ampere.profiling.campaigns.campaign import Trainer
from ampere.profiling.experiment import Experiment
from ampere.profiling.merging import merged
from ampere.profiling.rounds import one_round

from .budget import deviations
from .price import Joules
from .pruner import Pruner
from .refitting import joules_of, knowing
from .result import Measured, Pruned

CHECKS = 3
SECONDS = 6.0  # of one check, by the device's clock
FEWEST, MOST = 4, 40  # rounds of one check
NEAR = 0.02  # below the budget by no more than this share of it, a result is good
BELOW = 0.003  # what is aimed below the budget, since measuring again gives a little more or less
OF_A_MEDIAN = 1.25  # its deviation over that of a mean
SPREAD = 0.025  # of rounds, relative, where there are too few to tell


@dataclass(frozen=True)
class Place:
    """Where original and result are trained, and how they are built there."""

    device: Trainer
    original: Experiment
    experiment_of: Callable[[Pruned], Experiment]
    clock: Callable[[], float] = time.monotonic
    seconds: float = SECONDS


def prune_and_check(
    pruner: Pruner,
    joules: Joules,
    estimator: Estimator,
    allowed: Callable[[float], float],  # joules of an iteration now -> joules that are allowed
    confidence: float,
    place: Place,
) -> Pruned:
    """The best of a few results that were measured: the dearest inside the budget, or else the cheapest."""
    sure = deviations(confidence)
    aim = allowed(joules.estimate(pruner.network).joules) * (1 - BELOW)
    seen, found = Seen(place, estimator), list[Pruned]()
    for check in range(CHECKS):
        try:
            pruned = pruner.pruned(joules, aim, confidence)
        except AmpereError:
            if not found:
                raise
            break  # what the corrected estimate asks for cannot be had
        pruner.progress(check, CHECKS, "training original and result to see what they cost")
        measured = seen.measured(pruned, Random(f"check {check}"))
        budget = allowed(measured.joules_before)
        bound = measured.joules_after * (1 + sure * measured.share_doubt)
        found.append(replace(pruned, measured=measured, budget_joules=budget, bound_joules=bound))
        if pruner.strategy == "flops" or ((1 - NEAR) * budget <= measured.joules_after and bound <= budget):
            break
        estimator = seen.estimator()
        allocator = place.original.allocator
        factor = measured.joules_after / estimator.estimate(pruned.networks[1], allocator).joules
        joules = Joules(estimator, allocator, 0.0, pruner.network, factor)
        aim = budget / (1 + sure * measured.share_doubt) * (1 - BELOW)
    inside = [p for p in found if p.inside]
    return max(inside, key=lambda p: p.share) if inside else min(found, key=lambda p: p.share)


class Seen:
    """All rounds so far. The original takes part in every check, so what drifts meets both."""

    def __init__(self, place: Place, estimator: Estimator) -> None:
        self._place, self._estimator = place, estimator
        self._rounds: list[Observation] = []

    def measured(self, pruned: Pruned, rng: Random) -> Measured:
        both = [self._place.original, self._place.experiment_of(pruned)]
        began = self._place.clock()
        for done in range(MOST):
            if done >= FEWEST and self._place.clock() - began > self._place.seconds:
                break
            for experiment in rng.sample(both, 2):
                guess = self._estimator.model.answer(experiment.network).seconds
                self._rounds += one_round(
                    experiment, self._place.device, self._estimator.profile, guess, thorough=False
                )
        whole, left = (self._of(experiment) for experiment in both)
        before, after = joules_of(self._estimator, whole, left)
        return Measured(before, after, hypot(_doubt(whole), _doubt(left)), len(left.rounds))

    def estimator(self) -> Estimator:
        """With what was seen here among what it knows."""
        return knowing(self._estimator, merged(self._rounds))

    def _of(self, experiment: Experiment) -> Measurement:
        own = [o for o in self._rounds if o.network == experiment.network]
        if not own:
            raise DeviceError(
                "no round gave a usable figure: close other programs and try again, or leave it unchecked"
            )
        return merged(own)[0].measurement


def _doubt(measurement: Measurement) -> float:
    """Of the median of its rounds, relative."""
    spread = measurement.spread if len(measurement.rounds) >= FEWEST else None
    return OF_A_MEDIAN * (spread if spread is not None else SPREAD) / sqrt(len(measurement.rounds))
