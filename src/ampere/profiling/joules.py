"""Joules that a counter read, learnt for themselves: from the hyperparameters of time, which are not far away."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ampere.fitting import data_of, told_in_joules
from ampere.profiles.profile import Observation
from ampere.surrogate.additive import Additive
from ampere.surrogate.features import Array
from ampere.surrogate.hyperparameters import Hyperparameters
from ampere.surrogate.learning import calibrated, learn

LAST_EVALUATIONS = 60
FEWEST = 8  # measurements, up to which hyperparameters are left as they are


def joules_learnt(
    observations: Sequence[Observation], time: Hyperparameters, unit: float, seconds: float = float("inf")
) -> Additive:
    """`unit` is the yardstick's joules; the search may take about so many `seconds`."""
    data = data_of(told_in_joules(observations, unit), unit)
    model = learn(data, time, LAST_EVALUATIONS if len(data) > FEWEST else 0, seconds)
    return calibrated(model, whole_networks(observations))


def whole_networks(observations: Sequence[Observation]) -> Array:
    return np.array([o.purpose == "network" for o in observations], dtype=bool)
