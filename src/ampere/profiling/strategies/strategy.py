"""The interface of strategies, which collect measurements.

MeasurementContext   where experiments are trained: observe(experiment) trains one, records it and returns it
Task                 the goal, the start time, and earlier observations
    strategy.collect(context, task) -> Collected(observations, ...)
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Protocol

from ampere.core import Measurement, Meter, Network, TrainingSetup, work
from ampere.core.kinds import USUAL_WIDTH
from ampere.core.measurement import seconds_per_iteration
from ampere.core.setup import TIMINGS
from ampere.devices import VariantDied
from ampere.estimation.additive import Additive
from ampere.estimation.features import PRIOR_PRICES, network_features
from ampere.estimation.normalization import YARDSTICK_JOULES, Reference, guide, usable
from ampere.profiling.experiment import Experiment
from ampere.profiling.meter_windows import steady_power
from ampere.profiling.observing import request
from ampere.profiling.sources import Source
from ampere.storage.profile import Observation

CLOCK_MOVED = 0.075  # relative change of the yardstick's time, from which on its power is read again


class Trainer(Protocol):
    """The part of a worker that strategies use."""

    def block(
        self,
        workload: Mapping[str, Any],
        setup: TrainingSetup,
        *,
        iterations: int,
        warmup: int,
        pairing: str,
        isolation: str,
    ) -> Measurement: ...


@dataclass(frozen=True)
class Goal:
    """When a profiling run ends."""

    seconds: float = 15.0  # infinite for a strategy that ends by a rule of its own
    target: float = 0.0  # mean relative error to stop at; 0 uses all the time
    samples: int = 0  # measurements of isolated layers to end at, however long they take; 0 ends by the seconds

    @property
    def own_end(self) -> bool:
        """Whether the strategy's own rule ends the run, however long that takes."""
        return math.isinf(self.seconds)


@dataclass(frozen=True)
class Progress:
    """How far a profiling run is."""

    elapsed: float
    seconds: float
    experiments: int
    expected_error: float | None
    doing: str
    compile_seconds: float = 0.0  # part of the elapsed seconds
    share: float | None = None  # of the work, where time does not say it


class FittingSizes:
    """Which networks fit into the device's memory, learnt from those that did not."""

    def __init__(self) -> None:
        self._too_large = float("inf")

    def fits(self, network: Network) -> bool:
        """Whether no network of its size or a smaller one has run out of memory."""
        return _size(network) < self._too_large

    def ran_out(self, network: Network) -> None:
        self._too_large = min(self._too_large, _size(network))


def _size(network: Network) -> float:
    return float(sum(work(layer).values + work(layer).parameters for layer in network.layers))


@dataclass(frozen=True)
class MeasurementContext:
    """Where a strategy trains experiments.

    Every block is recorded before the next one starts, so a killed run loses at most one.
    """

    source: Source
    trainers: Mapping[str, Trainer]
    setup: TrainingSetup
    meter: Meter
    yardstick_seconds: float
    record: Callable[[Observation], None]
    timing: str = "yardstick"
    yardstick_joules: float | None = None  # where a counter reads them
    clock: Callable[[], float] = time.monotonic  # a simulated device has its own, on which only training takes time
    vector_width: int = USUAL_WIDTH  # the device's own, where it reports one
    compiles: bool = False  # whether the runtime compiles every new shape
    one_by_one: bool = False  # whether the runtime computes channels beyond the last full vector one by one
    offers: Callable[[Experiment], bool] = lambda _: True  # whether the device can train it: a replayed one may not
    iterations: int | None = None  # of each block; None for as many as usual
    count: bool = True  # whether joules are read; else blocks are only timed, without waiting for a slow counter
    full: Callable[[], bool] = lambda: False  # whether no more can be recorded
    yardstick_now: Callable[[], float | None] = lambda: None  # reads the joules of a yardstick step with a gauge
    memory: FittingSizes = field(default_factory=FittingSizes)

    @property
    def reference(self) -> Reference:
        """The condition that costs refer to."""
        return Reference(self.yardstick_seconds, self.yardstick_joules, guide(self.timing, self.setup.threads))

    @property
    def steady(self) -> bool:
        """Whether the meter is a slow gauge, whose power is read once a load is steady."""
        return steady_power(self.meter, timing=self.timing)

    @property
    def window_seconds(self) -> float:
        """The shortest window that a block needs for its joules; 0 where blocks are only timed."""
        return self.meter.window_seconds if self.count else 0.0

    def observe(self, experiment: Experiment, step_seconds: float, settled: bool = False) -> Observation | None:
        """Trains and records one block; None where the measurement is unusable. Raises VariantDied, VariantFailed.

        It also returns None, and trains nothing, where a network of that size ran out of memory before.
        `step_seconds` is a guess. `settled` times a loop of steps instead of each step next to the yardstick.
        """
        if not self.memory.fits(experiment.network):
            return None
        how: dict[str, Any] = {
            "timing": self.timing,
            "count": self.count,
            "iterations": self.iterations,
            "settled": settled,
        }
        arguments = request(experiment, self.setup, step_seconds, **how)
        return self._recorded(experiment, self._trained(experiment, arguments))

    def read_power(self, experiment: Experiment, step_seconds: float) -> Observation | None:
        """Reads power with a gauge under a steady load; where the clock has changed, also that of the yardstick."""
        arguments = request(experiment, self.setup, step_seconds, power=True)
        found = self._trained(experiment, arguments)
        yardstick = seconds_per_iteration(found.yardstick, self.reference.clock)
        if abs(yardstick / self.yardstick_seconds - 1) > CLOCK_MOVED and (joules := self.yardstick_now()):
            found = replace(found, conditions={**found.conditions, YARDSTICK_JOULES: joules})
        return self._recorded(experiment, found)

    def _trained(self, experiment: Experiment, arguments: dict[str, Any]) -> Measurement:
        try:
            return self.trainers[experiment.allocator].block(**arguments)
        except VariantDied as died:
            if died.out_of_memory:
                self.memory.ran_out(experiment.network)
            raise

    def _recorded(self, experiment: Experiment, found: Measurement) -> Observation | None:
        if not usable(found, self.reference):
            return None
        seen = experiment.observed(found)
        self.record(seen)
        return seen


@dataclass(frozen=True)
class Task:
    """What a strategy has to do."""

    goal: Goal
    began: float  # by the context's clock; the time to start the device counts
    on_progress: Callable[[Progress], None] = lambda _: None
    known: tuple[Observation, ...] = ()  # from earlier runs
    fit: Mapping[str, Any] = field(default_factory=dict)  # hyperparameters that an earlier run ended with
    seed: int = 0


@dataclass(frozen=True)
class Collected:
    """The result of a strategy."""

    observations: tuple[Observation, ...]
    expected_error: float | None = None  # None where the method estimates none
    thinking_seconds: float = 0.0
    refused: tuple[str, ...] = ()  # experiments that could not be trained, each with the reason
    model: Additive | None = None  # fitted to seconds, by strategies that fit while they measure
    joules_model: Additive | None = None  # where a counter read joules
    fit: Mapping[str, Any] = field(default_factory=dict)  # what a method without such a model is fitted with
    ended: Mapping[str, int] = field(default_factory=dict)  # how many kinds ended by rule, limit of points and time


@dataclass(frozen=True)
class Strategy:
    """A way to collect measurements, and what it needs."""

    collect: Callable[[MeasurementContext, Task], Collected]
    allocators: tuple[str, ...] = ("tuned",)  # one worker is started for each
    timings: tuple[str, ...] = TIMINGS  # ways of timing that it supports
    stages: bool = False  # whether it times the stages of a step separately
    ends_itself: bool = False  # whether it has a rule of its own that ends it
    any_iterations: bool = False  # whether a measurement may have as many iterations as the user says


class Guess:
    """A guess of a step's seconds before anything is fitted: prior prices, at the speed observed so far."""

    def __init__(self, known: tuple[Observation, ...] = ()) -> None:
        self._speeds = [1.0]
        for seen in known:
            self.learn(seen)

    def seconds(self, network: Network) -> float:
        """The guessed seconds of one step."""
        return median(self._speeds) * _by_prior(network)

    def learn(self, observation: Observation) -> None:
        """Updates the speed."""
        if self._speeds == [1.0]:
            self._speeds.clear()
        self._speeds.append(observation.measurement.wall_seconds / _by_prior(observation.network))


def _by_prior(network: Network) -> float:
    return float(network_features(network, USUAL_WIDTH).row @ PRIOR_PRICES)
