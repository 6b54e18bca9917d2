"""What to train next: the experiments that reduce the uncertainty of the user's networks most per second.

TimeAllocation   how a run divides its time between whole networks, pieces of them and repeats
Compiling        what compiling will take, with runtimes that compile every new shape
plan             the experiments of the next batch
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ampere.estimation.additive import Additive
from ampere.estimation.features import Array
from ampere.storage.profile import Observation

from .experiment import Experiment

OVERHEAD_LAYERS = 0.3  # compiled with every network (the loss, the program itself), in layers
FIRST_GUESS = 0.25  # seconds to compile a layer, before any was compiled
SPACE_FROM_SECONDS = 40.0
ENOUGH_NETWORKS = 6  # compiled whole networks, from which layers can be separated without pieces


class TimeAllocation(NamedTuple):
    """How a profiling run divides its time."""

    repeated: float  # share of experiments that are trained twice
    drawn: float  # share of a batch for random whole networks, instead of planned experiments
    networks: int  # sampled before each batch, at most
    sampling: float  # share of the budget that sampling them may take, each time
    plain: float = 0.0  # share of a batch for random networks trained with the system's allocator, as users do
    pieces: float = 0.0  # share of a batch for pieces of these networks, which separate their layers
    plans: bool = True  # whether the rest of a batch is planned


# A new network is more informative than a repeat; repeats only have to show the noise. The networks of a whole space
# differ more, so more of them are needed.
FAMILY = TimeAllocation(repeated=0.25, drawn=0.5, networks=32, sampling=0.012, plain=0.2)
SPACE = TimeAllocation(repeated=0.1, drawn=0.7, networks=200, sampling=0.01, plain=0.1)
# Of a whole device users ask about loops of other networks than were measured; its networks take longer to trace.
DEVICE = SPACE._replace(drawn=0.5, sampling=0.02, plain=0.3)
# A slow counter makes every block expensive, so little is trained twice.
FEW_BLOCKS = TimeAllocation(repeated=0.3, drawn=0.3, networks=16, sampling=0.01, pieces=0.4)
# Compiling makes every new shape expensive and every further round cheap. A piece that is compiled alone differs from
# the same piece in a network, so pieces are used only where too few whole networks can be compiled. A planner would
# choose what is compiled already, which is cheap and not informative.
COMPILED = TimeAllocation(repeated=1.0, drawn=0.85, networks=32, sampling=0.01, plain=0.15, plans=False)
COMPILED_SLOWLY = TimeAllocation(repeated=1.0, drawn=0.6, networks=16, sampling=0.01, plain=0.1, pieces=0.2)


def time_allocation(
    seconds: float, window_seconds: float, compile_seconds: float | None = None, whole_device: bool = False
) -> TimeAllocation:
    """The time allocation of a run. `compile_seconds` is the time to compile a whole network, or None."""
    if window_seconds:
        return FEW_BLOCKS
    if compile_seconds is not None:
        return COMPILED if ENOUGH_NETWORKS * compile_seconds < seconds else COMPILED_SLOWLY
    if seconds < SPACE_FROM_SECONDS:
        return FAMILY
    return DEVICE if whole_device else SPACE


class Compiling:
    """Compile times, learnt from observations: a new shape takes time, a compiled one takes none."""

    def __init__(self, compiles: bool) -> None:
        self._compiles = compiles
        self._seconds = self._layers = 0.0
        self._compiled: set[tuple[object, ...]] = set()

    @property
    def spent(self) -> float:
        """Seconds spent on compiling so far."""
        return self._seconds

    @property
    def informed(self) -> bool:
        """Whether compile times were observed, or nothing has to be compiled."""
        return not self._compiles or self._seconds > 0

    def learn(self, seen: Observation) -> None:
        """Adds what an observation shows."""
        self._compiled.add((seen.network, seen.measurement.allocator))
        seconds = seen.measurement.compile_seconds
        if seconds:
            self._seconds += seconds
            self._layers += len(seen.network.layers) + OVERHEAD_LAYERS

    def seconds(self, experiment: Experiment) -> float:
        """Seconds of compiling that the experiment's next block will need."""
        return 0.0 if not self._compiles or self.is_compiled(experiment) else self.seconds_of_new(experiment)

    def is_compiled(self, experiment: Experiment) -> bool:
        """Whether the experiment is compiled already."""
        return self._compiles and (experiment.network, experiment.allocator) in self._compiled

    def seconds_of_new(self, experiment: Experiment) -> float:
        """Seconds to compile an experiment that is not compiled yet."""
        each = self._seconds / self._layers if self._layers else FIRST_GUESS
        return each * (len(experiment.network.layers) + OVERHEAD_LAYERS)


@dataclass(frozen=True)
class Plan:
    """The chosen experiments, in the order of choice."""

    chosen: list[Experiment]
    expected_error: float  # mean absolute relative error on the targets, before any of the chosen is trained


def plan(
    model: Additive,
    candidates: Sequence[Experiment],
    targets: Sequence[Experiment],
    seconds_of: Callable[[Experiment, float], float],
    noise_of: Callable[[Experiment], float],
    seconds: float,
) -> Plan:
    """The experiments to train in these seconds, chosen greedily: each choice counts as measured for the next."""
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
    """The mean absolute relative error that the model expects on the targets."""
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
