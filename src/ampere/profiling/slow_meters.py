"""Profiling with a slow meter: time from many short blocks, power from a few readings.

| short blocks, only timed ......... | reading | reading | reading ...    until the target or the end
  seconds of a step, layer by layer    watts of networks with different rates of work

A gauge reads the power of steady loads, a counter reads joules in long windows. Power varies far less between networks
than time does (estimation/power.py), so a few readings are enough; their uncertainty is part of the joules of
everything that was only timed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ampere.core import Network, units
from ampere.core.windows import reading_by
from ampere.devices import VariantDied, VariantFailed
from ampere.estimation.fitting import counted, power_of
from ampere.estimation.hyperparameters import Hyperparameters
from ampere.estimation.normalization import NormalizedCost
from ampere.profiling.strategies.strategy import Collected, Goal, MeasurementContext, Progress, Task
from ampere.storage.profile import Observation

from .experiment import Experiment
from .loop import Profiling
from .meter_windows import timed_seconds
from .observing import BUILD_SECONDS, block_seconds

WINDOWS_AT_LEAST, WINDOWS_AT_MOST = 2, 200


class TimedFirst(Profiling):
    """A run that only times networks; the power of those networks can be read afterwards."""

    def __init__(
        self, context: MeasurementContext, seen: tuple[Observation, ...], hyper: Hyperparameters, seed: int
    ) -> None:
        super().__init__(replace(context, count=False), seen, hyper, seed)
        self._trained: dict[Network, Experiment] = {}

    @property
    def tuned(self) -> tuple[NormalizedCost, ...]:
        """Costs with the tuned allocator."""
        return tuple(c for c in self._costs() if c.allocator == "tuned")

    def next_to_read(self) -> Experiment | None:
        """The network whose power is most informative about all the others; None where none is left."""
        costs = self.tuned
        unread = np.array([_unread(c) and c.network in self._trained for c in costs])
        if not np.any(unread):
            return None
        gains = np.where(unread, power_of(costs).gains(), -np.inf)
        return self._trained[costs[int(np.argmax(gains))].network]

    def reading_seconds(self, context: MeasurementContext, experiment: Experiment) -> float:
        """How long reading the power of an experiment takes."""
        if context.steady:
            return reading_by(context.meter.update_seconds).whole + BUILD_SECONDS[experiment.allocator]
        step = self._model.answer(experiment.network).seconds
        return block_seconds(experiment.allocator, step, context.yardstick_seconds, context.meter.window_seconds)

    def read_power(self, context: MeasurementContext, experiment: Experiment) -> None:
        """Reads the power of an experiment, which is not offered again."""
        del self._trained[experiment.network]
        try:
            if context.steady:
                seen = context.read_power(experiment, self._seconds(experiment.network))
            else:
                seen = context.observe(experiment, self._model.answer(experiment.network).seconds)
        except (VariantDied, VariantFailed) as error:
            self._refuse(experiment, error)
        else:
            self._seen += [seen] if seen else []

    def _seconds(self, network: Network) -> float:
        return next(c.guiding_seconds for c in self.tuned if c.network == network and c.purpose == "network")

    def outcome(self) -> Collected:
        """The observations so far; the expected error of joules is that of time and that of power."""
        outcome, costs = super().outcome(), self.tuned
        if not counted(costs):
            return outcome
        seconds = np.array([c.guiding_seconds for c in costs])
        _, uncertainties = power_of(costs).watts([c.network for c in costs], seconds)
        error = float(np.hypot(outcome.expected_error or 0.0, np.sqrt(2 / np.pi) * np.mean(uncertainties)))
        return replace(outcome, expected_error=error)

    def _observe(self, experiment: Experiment, chosen: list[Experiment]) -> None:
        before = len(self._seen)
        super()._observe(experiment, chosen)
        if len(self._seen) > before and not experiment.system:
            self._trained.setdefault(experiment.network, experiment)


def profile_with_slow_meter(context: MeasurementContext, task: Task, hyper: Hyperparameters) -> Collected:
    """Times many networks, then reads the power of a few, until the target or the end of the time."""
    goal, run = task.goal, TimedFirst(context, task.known, hyper, task.seed)
    seconds = timed_seconds(context.meter, context.steady, goal.seconds - (context.clock() - task.began))
    run.run(Goal(seconds, goal.target / 2), context.clock(), _within(task, context.clock() - task.began))
    for number in range(WINDOWS_AT_MOST):
        experiment, spent = run.next_to_read(), context.clock() - task.began
        enough = number >= WINDOWS_AT_LEAST
        if experiment is None or (enough and spent + run.reading_seconds(context, experiment) > goal.seconds):
            break
        if goal.target and enough and (run.outcome().expected_error or 0.0) < goal.target:
            break
        doing = f"power of {experiment.purpose} of {units.counted(len(experiment.network.layers), 'layer')}"
        task.on_progress(Progress(spent, goal.seconds, len(run.tuned), None, doing))
        run.read_power(context, experiment)
    return run.outcome()


def _within(task: Task, before: float) -> Callable[[Progress], None]:
    """Reports progress of the timed part as progress of the whole run."""
    return lambda now: task.on_progress(replace(now, elapsed=now.elapsed + before, seconds=task.goal.seconds))


def _unread(cost: NormalizedCost) -> bool:
    """Whether this is a whole network without joules. Pieces draw another power, so only whole networks are read."""
    return cost.purpose == "network" and not cost.joules_rounds
