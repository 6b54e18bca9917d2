"""What a campaign is given, and what it brings back.

Bench   where it trains: observe(experiment) trains one, records it, returns it
Task    how long, since when, what is known already
    campaign.gather(bench, task) -> Gathered(observations, ...)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Protocol

from ampere.core import Meter, Network, TrainingSetup
from ampere.core.kinds import USUAL_WIDTH
from ampere.core.setup import PROTOCOLS
from ampere.devices import Block
from ampere.estimation.features import PRIOR_PRICES, network_features
from ampere.profiling.experiment import Experiment
from ampere.profiling.meter_windows import steady_power
from ampere.profiling.observing import observation, read_by_gauge, request
from ampere.profiling.sources import Source
from ampere.storage.profile import Observation

CLOCK_MOVED = 0.075  # of the yardstick's time beside a reading of power: from there on its power is not the usual one


class Trainer(Protocol):
    """What a campaign needs of a device."""

    def block(
        self,
        subject: Mapping[str, Any],
        setup: TrainingSetup,
        *,
        iterations: int,
        warmup: int,
        pairing: str,
        isolation: str,
    ) -> Block: ...


@dataclass(frozen=True)
class Goal:
    seconds: float = 15.0
    target: float = 0.0  # mean relative error to stop at


@dataclass(frozen=True)
class Progress:
    elapsed: float
    seconds: float
    experiments: int
    expected_error: float | None
    doing: str
    compile_seconds: float = 0.0  # of those elapsed


@dataclass(frozen=True)
class MeasurementContext:
    """Every block is recorded before the next one starts, so a killed run loses at most one."""

    source: Source
    trainers: Mapping[str, Trainer]
    setup: TrainingSetup
    meter: Meter
    yardstick_seconds: float
    record: Callable[[Observation], None]
    protocol: str = "yardstick"
    yardstick_joules: float | None = None  # where a counter reads them
    clock: Callable[[], float] = time.monotonic  # of a simulated device its own: only what it does takes time
    vector_width: int = USUAL_WIDTH  # as far as the device says
    compiles: bool = False  # whether the runtime compiles every new shape
    one_by_one: bool = False  # whether it does channels beyond the last full vector one by one
    offers: Callable[[Experiment], bool] = lambda _: True  # a replayed device has only what was recorded
    count: bool = True  # else only time is asked for, and a slow counter is left alone
    yardstick_now: Callable[[], float | None] = lambda: None  # joules of its step by a gauge, just now

    @property
    def steady(self) -> bool:
        """Whether the meter is a slow gauge, whose power is read once a load is steady."""
        return steady_power(self.meter, protocol=self.protocol)

    @property
    def window_seconds(self) -> float:
        """What a block waits for."""
        return self.meter.window_seconds if self.count else 0.0

    def observe(self, experiment: Experiment, step_seconds: float) -> Observation | None:
        """`step_seconds` is a guess. None where the block has no usable figure; VariantDied, VariantFailed."""
        asked = request(experiment, self.setup, step_seconds, protocol=self.protocol, count=self.count)
        block = self.trainers[experiment.allocator].block(**asked)
        seen = observation(experiment, block, self.meter, self.yardstick_seconds, self.yardstick_joules)
        if seen is not None:
            self.record(seen)
        return seen

    def read_power(self, experiment: Experiment, step_seconds: float) -> Observation | None:
        """By a gauge, once the load is steady; beside the yardstick's power only where the clock is not as usual."""
        asked = request(experiment, self.setup, step_seconds, power=True)
        block = self.trainers[experiment.allocator].block(**asked)
        if block.yardstick_seconds and abs(block.yardstick_seconds / self.yardstick_seconds - 1) > CLOCK_MOVED:
            block = replace(block, yardstick_joules=self.yardstick_now())
        seen = observation(experiment, block, self.meter, self.yardstick_seconds, self.yardstick_joules)
        if seen is not None:
            seen = read_by_gauge(seen, block.joules) if block.joules else seen
            self.record(seen)
        return seen


@dataclass(frozen=True)
class Task:
    goal: Goal
    began: float  # when the bench's clock started: starting the device counts
    on_progress: Callable[[Progress], None] = lambda _: None
    known: tuple[Observation, ...] = ()
    fit: Mapping[str, Any] = field(default_factory=dict)  # hyperparameters that an earlier run ended with
    seed: int = 0


@dataclass(frozen=True)
class Collected:
    observations: tuple[Observation, ...]
    fit: Mapping[str, Any] = field(default_factory=dict)
    expected_error: float | None = None  # None where the method does not tell
    thinking_seconds: float = 0.0
    refused: tuple[str, ...] = ()
    joules_fit: Mapping[str, Any] = field(default_factory=dict)  # of joules that a counter read


@dataclass(frozen=True)
class Strategy:
    gather: Callable[[MeasurementContext, Task], Collected]
    allocators: tuple[str, ...] = ("tuned",)  # of the workers that it needs
    protocols: tuple[str, ...] = PROTOCOLS  # that it can be timed by
    stages: bool = False  # whether it times the stages of a step by themselves


# How long a step will take, before anything is fitted: prices of a slow laptop, at the speed seen so far.


class Guess:
    def __init__(self, known: tuple[Observation, ...] = ()) -> None:
        self._speeds = [1.0]
        for seen in known:
            self.learn(seen)

    def seconds(self, network: Network) -> float:
        return median(self._speeds) * _by_prior(network)

    def learn(self, observation: Observation) -> None:
        if self._speeds == [1.0]:
            self._speeds.clear()
        self._speeds.append(observation.measurement.cpu_seconds / _by_prior(observation.network))


def _by_prior(network: Network) -> float:
    return float(network_features(network, USUAL_WIDTH).row @ PRIOR_PRICES)
