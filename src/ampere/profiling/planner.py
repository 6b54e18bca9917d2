"""What to train next: whatever reduces the doubt about the user's networks most, for a second of measuring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ampere.surrogate.additive import Additive
from ampere.surrogate.features import Array

from .experiment import Experiment


@dataclass(frozen=True)
class Plan:
    chosen: list[Experiment]
    expected_error: float  # of the user's networks, before any of the chosen is trained; mean absolute, relative


def plan(
    model: Additive,
    candidates: Sequence[Experiment],
    targets: Sequence[Experiment],
    seconds_of: Callable[[Experiment, float], float],
    noise_of: Callable[[Experiment], float],
    seconds: float,
) -> Plan:
    """Greedy: choose, pretend it was measured, choose again until the seconds are used up."""
    everything = [*candidates, *targets]
    system = np.array([float(e.system) for e in everything])
    means, posterior = model.joint([e.network for e in everything], system)
    relative = posterior / np.outer(means, means)
    wanted = slice(len(candidates), None)
    error = _mean_absolute(np.diag(relative)[wanted])
    costs = np.array([seconds_of(e, m) for e, m in zip(candidates, means[: len(candidates)], strict=True)])
    noise = np.array([noise_of(e) for e in candidates])
    return Plan([candidates[i] for i in _greedy(relative, costs, noise, wanted, seconds)], error)


def expected_error(model: Additive, targets: Sequence[Experiment]) -> float:
    """Mean absolute relative error that the model expects of itself on the targets."""
    system = np.array([float(e.system) for e in targets])
    means, posterior = model.joint([e.network for e in targets], system)
    return _mean_absolute(np.diag(posterior) / means**2)


def _mean_absolute(variances: Array) -> float:
    return float(np.mean(np.sqrt(np.maximum(variances, 0.0))) * np.sqrt(2 / np.pi))


def _greedy(relative: Array, costs: Array, noise: Array, wanted: slice, seconds: float) -> list[int]:
    chosen: list[int] = []
    count, left = len(costs), seconds
    open_ = np.ones(count, dtype=bool)
    while np.any(open_):
        variance = np.maximum(np.diag(relative)[:count], 0.0) + noise
        gain = np.sum(relative[:count, wanted] ** 2, axis=1) / variance / costs
        best = int(np.argmax(np.where(open_, gain, -1.0)))
        if costs[best] > left and chosen:
            break
        chosen.append(best)
        open_[best] = False
        left -= costs[best]
        relative = relative - np.outer(relative[:, best], relative[best]) / variance[best]
    return chosen
