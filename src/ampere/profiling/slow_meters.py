"""Profiling with a slow meter: time from many short blocks, power from a few readings: of steady loads by a gauge, in
long windows by a counter.

| short blocks, only timed ......... | reading | reading | reading ...    until the target or the end
  what a step takes, layer by layer    watts of networks that do unlike things a second

Power varies far less between networks than time does (surrogate/power.py), so that a handful of readings tells it; what
they leave open is carried along as doubt of the joules of everything that was only timed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ampere.core import Network
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
    """A run on a context that only tells time; the power of what it trained can be read afterwards on another."""

    def __init__(
        self, context: MeasurementContext, seen: tuple[Observation, ...], hyper: Hyperparameters, seed: int
    ) -> None:
        super().__init__(replace(context, count=False), seen, hyper, seed)
        self._trained: dict[Network, Experiment] = {}

    @property
    def quiet(self) -> tuple[NormalizedCost, ...]:
        return tuple(c for c in self._costs() if c.allocator == "tuned")

    def next(self) -> Experiment | None:
        """The network whose power would tell most about that of all the others."""
        costs = self.quiet
        unread = np.array([_unread(c) and c.network in self._trained for c in costs])
        if not np.any(unread):
            return None
        gains = np.where(unread, power_of(costs).gains(), -np.inf)
        return self._trained[costs[int(np.argmax(gains))].network]

    def cost(self, context: MeasurementContext, experiment: Experiment) -> float:
        if context.steady:
            return reading_by(context.meter.update_seconds).whole + BUILD_SECONDS[experiment.allocator]
        step = self._model.answer(experiment.network).seconds
        return block_seconds(experiment.allocator, step, context.yardstick_seconds, context.meter.window_seconds)

    def read_power(self, context: MeasurementContext, experiment: Experiment) -> None:
        del self._trained[experiment.network]  # once is enough
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
        return next(c.busy_seconds for c in self.quiet if c.network == network and c.purpose == "network")

    def outcome(self) -> Collected:
        """What is expected of joules: the error of time, and that of power."""
        outcome, costs = super().outcome(), self.quiet
        if not counted(costs):
            return outcome
        seconds = np.array([c.busy_seconds for c in costs])
        _, uncertainties = power_of(costs).watts([c.network for c in costs], seconds)
        error = float(np.hypot(outcome.expected_error or 0.0, np.sqrt(2 / np.pi) * np.mean(uncertainties)))
        return replace(outcome, expected_error=error)

    def _observe(self, experiment: Experiment, chosen: list[Experiment]) -> None:
        before = len(self._seen)
        super()._observe(experiment, chosen)
        if len(self._seen) > before and not experiment.system:
            self._trained.setdefault(experiment.network, experiment)


def profile_with_slow_meter(context: MeasurementContext, task: Task, hyper: Hyperparameters) -> Collected:
    goal, run = task.goal, TimedFirst(context, task.known, hyper, task.seed)
    seconds = timed_seconds(context.meter, context.steady, goal.seconds - (context.clock() - task.began))
    run.run(Goal(seconds, goal.target / 2), context.clock(), _within(task, context.clock() - task.began))
    for number in range(WINDOWS_AT_MOST):
        experiment, spent = run.next(), context.clock() - task.began
        enough = number >= WINDOWS_AT_LEAST
        if experiment is None or (enough and spent + run.cost(context, experiment) > goal.seconds):
            break
        if goal.target and enough and (run.outcome().expected_error or 0.0) < goal.target:
            break
        doing = f"power of {experiment.purpose} of {len(experiment.network.layers)} layers"
        task.on_progress(Progress(spent, goal.seconds, len(run.quiet), None, doing))
        run.read_power(context, experiment)
    return run.outcome()


def _within(task: Task, before: float) -> Callable[[Progress], None]:
    """Progress of the first part, told as that of the whole."""
    return lambda now: task.on_progress(replace(now, elapsed=now.elapsed + before, seconds=task.goal.seconds))


def _unread(cost: NormalizedCost) -> bool:
    """Whole networks are what users ask about; what their pieces draw is not the same."""
    return cost.purpose == "network" and not cost.joules_rounds
