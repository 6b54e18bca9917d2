"""What a model's layers say, and what its own code showed: two answers to one question, combined by their variances.

    m   joules that the layers say           s   relative standard deviation of that
    c   joules that the own code showed      v   its relative variance: processes differ, and so do hours and scripts
    F   how far code is from its description: copies, views and memory formats that no layer kind shows

    log truth ~ N(log m, s^2 + F^2),   log c ~ N(log truth, v)
    log truth = log m + w log(c / m),  w = d^2 / (d^2 + v),  variance w v,  d^2 = max(s^2 + F^2, log(c / m)^2 - v)

Where both are further apart than either admits, d is what they show: code that really ran is believed rather than
layers that were added up.
Layers are not fitted to what code showed: a model whose code copies its tensors says nothing about convolutions, so
no other model's estimate changes. F is learnt from all models whose code was trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp, hypot, isfinite, log, sqrt
from typing import NamedTuple

from ampere.core import Network
from ampere.storage.profile import Observation

from .estimate import Estimate, Touch
from .estimator import Estimator, newest, usable_fit
from .fitting import noise_of
from .normalization import NormalizedCost, conditions_of, normalized, reference_of, to_reference

CODE_STDDEV, PRIOR_MODELS = 0.1, 4.0  # F before any code was trained, and the number of models that this counts for
# Relative, at another time: the yardstick does not follow everything, and less where the machine's speed wanders more.
LATER_STDDEV, LATER_SHARE = 0.02, 0.35  # at least, and of how much it wandered while the device was profiled
THREADS_STDDEV = 0.045  # the same of several threads, which also wait for each other
# Processes and scripts differ in how often the system's allocator gives memory back (decision 40): by a part of what
# page faults cost. Processes differ by a little more, relative to the whole step.
FAULTS_STDDEV, PROCESS_STDDEV = 0.2, 0.025
FIRST_STEPS_STDDEV = 0.15  # relative, of one step in a process, which takes memory for the first time; of n, an n-th
# By how much one model's part of the yardstick's slowdown differs from another's: a small one that uses one of two
# threads hardly feels the second core's neighbours. What is trained on a much slower machine says less.
MODEL_SHARE_STDDEV = 0.2
CHECKING_PROCESSES = 3  # that a measurement of the truth trains: their differences stay in the interval


class CodeCost(NamedTuple):
    """What a model's own code showed, in the reference condition."""

    network: Network
    joules: float
    variance: float  # relative, of the mean of the processes
    spread: float  # relative standard deviation between processes
    processes: int


def costs_of_code(
    estimator: Estimator, touches: Sequence[Observation], allocator: str = "system", first: Network | None = None
) -> dict[Network, CodeCost]:
    """The cost of each model whose own code was trained with this allocator; of many, `first` and the newest."""
    reference = reference_of(estimator.profile)
    found = [c for c in normalized(touches, reference) if c.allocator == allocator]
    if not found:
        return {}
    found = newest(sorted(found, key=lambda c: c.network == first))
    share = estimator.drift_share
    later = max(LATER_STDDEV, LATER_SHARE * (estimator.machine_spread or 0.0))
    waiting = THREADS_STDDEV if estimator.profile.setup.threads > 1 else 0.0

    def cost(raw: NormalizedCost) -> CodeCost:
        there = to_reference(raw, reference, share.part)
        modelled = there.ratio * reference.seconds * estimator.watts
        joules = there.joules if estimator.counted else modelled
        slower = float(conditions_of([raw], reference)[0]) if raw.yardsticks else 0.0
        converted = hypot(share.stddev, MODEL_SHARE_STDDEV) * slower
        by_lot = FAULTS_STDDEV * estimator.page_faults.seconds * there.page_faults / there.guiding_seconds
        noise = noise_of(there, len(there.rounds), there.spread, hypot(PROCESS_STDDEV, by_lot))
        first = FIRST_STEPS_STDDEV * len(there.rounds) / there.iterations
        variance = noise + converted**2 + later**2 + waiting**2 + first**2 + by_lot**2
        return CodeCost(there.network, joules, variance, sqrt(noise * len(there.rounds)), len(there.rounds))

    return {raw.network: cost(raw) for raw in found}


def code_stddev(estimator: Estimator, costs: Sequence[CodeCost], allocator: str) -> float:
    """F: the prior's, and what the models whose code was trained show beyond the uncertainty of both answers."""
    beyond = 0.0
    for cost in costs:
        layers = estimator.estimate(cost.network, allocator, 1.0)
        apart = log(cost.joules / layers.joules) ** 2
        beyond += max(0.0, apart - cost.variance - (layers.stddev / layers.joules) ** 2)
    return sqrt((PRIOR_MODELS * CODE_STDDEV**2 + beyond) / (PRIOR_MODELS + len(costs)))


def with_own_code(
    estimator: Estimator, estimate: Estimate, network: Network, touches: Sequence[Observation]
) -> Estimate:
    """The estimate combined with what the model's own code showed; as it is where that was not trained."""
    if not touches:
        return estimate
    with usable_fit(estimator.profile):
        costs = costs_of_code(estimator, touches, estimate.allocator, network)
        shown = costs.get(network)
        if shown is None:
            return estimate
        apart = code_stddev(estimator, [*costs.values()], estimate.allocator)
        found = _combined(estimate, shown, hypot(estimate.stddev / estimate.joules, apart))
        if not all(map(isfinite, (found.joules, found.stddev, found.seconds))):
            raise ValueError(f"the own code of {network.name or 'a network'} would cost {shown.joules:g} J")
    return found


def _combined(estimate: Estimate, shown: CodeCost, deviation: float) -> Estimate:
    """`deviation` is the relative standard deviation of the layers' answer, that of code around it included."""
    code = shown.joules * estimate.condition
    apart = log(code / estimate.joules)
    variance = max(deviation**2, apart**2 - shown.variance)
    weight = variance / (variance + shown.variance)
    factor = exp(weight * apart)
    stddev = hypot(sqrt(weight * shown.variance), shown.spread / sqrt(CHECKING_PROCESSES))
    return replace(
        estimate.scaled(factor),
        stddev=estimate.joules * factor * stddev,
        touch=Touch(estimate.joules, estimate.stddev, code, code * sqrt(shown.variance), shown.processes),
    )
