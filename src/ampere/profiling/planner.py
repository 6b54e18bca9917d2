"""What to train next: what reduces the uncertainty about the user's networks most, for a second of measuring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ampere.estimation.additive import Additive
from ampere.estimation.features import Array
from ampere.storage.profile import Observation

from .experiment import Experiment

# How a profiling run spends its time: on whole networks, on pieces of them, on repeats.


class TimeAllocation(NamedTuple):
    repeated: float  # share of what is trained that is trained twice
    drawn: float  # share of a batch for whole networks as they come, instead of planned experiments
    networks: int  # sampled before each batch, at most
    sampling: float  # share of the budget that this may take, each time
    plain: float = 0.0  # share of a batch for some of them as a user's own loop would train them
    pieces: float = 0.0  # share of a batch for pieces of these networks, so that their layers are told apart
    plans: bool = True  # else all is drawn


# One more network teaches more than one more round; only as many repeats are needed as tell the noise. In a whole
# space networks differ more, so that there are hardly enough of them.
FAMILY = TimeAllocation(repeated=0.25, drawn=0.5, networks=32, sampling=0.012, plain=0.2)
SPACE = TimeAllocation(repeated=0.1, drawn=0.7, networks=200, sampling=0.01, plain=0.1)
SPACE_FROM_SECONDS = 40.0
# A slow counter makes every block dear, so hardly anything is trained twice.
FEW_BLOCKS = TimeAllocation(repeated=0.3, drawn=0.3, networks=16, sampling=0.01, pieces=0.4)
# Compiling makes every new shape dear and every further round cheap. A piece compiled by itself is not what it is in
# a network: pieces serve only where so few whole networks could be compiled that nothing could be told from them.
# A planner would spend its time on what is compiled already, which is cheap and teaches little.
COMPILED = TimeAllocation(repeated=1.0, drawn=0.85, networks=32, sampling=0.01, plain=0.15, plans=False)
COMPILED_SLOWLY = TimeAllocation(repeated=1.0, drawn=0.6, networks=16, sampling=0.01, plain=0.1, pieces=0.2)
ENOUGH_NETWORKS = 6


def time_allocation(seconds: float, window_seconds: float, compile_seconds: float | None = None) -> TimeAllocation:
    """`compile_seconds` are those of a whole network; None where nothing is compiled."""
    if window_seconds:
        return FEW_BLOCKS
    if compile_seconds is not None:
        return COMPILED if ENOUGH_NETWORKS * compile_seconds < seconds else COMPILED_SLOWLY
    return FAMILY if seconds < SPACE_FROM_SECONDS else SPACE


# What compiling will take, so that the planner can weigh it: a new shape is dear, one that is compiled is free.

OVERHEAD_LAYERS = 0.3  # what is compiled with every network, told in layers: the loss, and the program itself
FIRST_GUESS = 0.25  # seconds a layer


class Compiling:
    def __init__(self, compiles: bool) -> None:
        self._compiles = compiles
        self._seconds = self._layers = 0.0
        self._known: set[tuple[object, ...]] = set()

    @property
    def spent(self) -> float:
        """Seconds, in all."""
        return self._seconds

    @property
    def informed(self) -> bool:
        """Whether it is more than a guess what compiling takes."""
        return not self._compiles or self._seconds > 0

    def learn(self, seen: Observation) -> None:
        self._known.add((seen.network, seen.measurement.allocator))
        seconds = seen.measurement.compile_seconds
        if seconds:
            self._seconds += seconds
            self._layers += len(seen.network.layers) + OVERHEAD_LAYERS

    def seconds(self, experiment: Experiment) -> float:
        """Of a block of it, from now on."""
        return 0.0 if not self._compiles or self.is_compiled(experiment) else self.seconds_of_new(experiment)

    def is_compiled(self, experiment: Experiment) -> bool:
        """Whether it is compiled already."""
        return self._compiles and (experiment.network, experiment.allocator) in self._known

    def seconds_of_new(self, experiment: Experiment) -> float:
        each = self._seconds / self._layers if self._layers else FIRST_GUESS
        return each * (len(experiment.network.layers) + OVERHEAD_LAYERS)


# What to train next: whatever reduces the doubt about the user's networks most, for a second of measuring.


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
