"""An estimator and what was measured after it was fitted: in its own terms, and among what it knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ampere.estimation import Estimator, watts_of
from ampere.fitting import sharing_in
from ampere.network import Measurement
from ampere.profiles.profile import Observation
from ampere.worker.meters import watts_in
from ampere.yardstick import in_reference


def joules_of(estimator: Estimator, *measurements: Measurement) -> list[float]:
    """Of an iteration, as estimates tell them: in the condition and at the watts that they speak of."""
    profile = estimator.profile
    sharing = sharing_in(profile.observations, profile.yardstick_seconds).part
    factor = estimator.condition.factor * estimator.watts / watts_of(profile)
    return [factor * in_reference(m, profile.yardstick_seconds, sharing).joules for m in measurements]


def knowing(estimator: Estimator, observations: Sequence[Observation]) -> Estimator:
    """The same, fitted to more observations of the same device."""
    more = replace(estimator.profile, observations=(*estimator.profile.observations, *observations))
    return Estimator(more, watts_in(estimator.meter.scope))
