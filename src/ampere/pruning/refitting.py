"""An estimator and what was measured after it was fitted: in its own terms, and among what it knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ampere.core import Measurement
from ampere.estimation.estimate import Estimator, watts_of
from ampere.estimation.fitting import drift_share_in
from ampere.estimation.normalization import to_reference
from ampere.meters import watts_in
from ampere.storage.profile import Observation


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
