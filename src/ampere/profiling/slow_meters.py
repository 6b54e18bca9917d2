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
from ampere.profiling.strategies.strategy import Goal, MeasurementContext, Progress, Task
from ampere.storage.profile import Observation

from .experiment import Experiment
from .loop import Outcome, Profiling
from .meter_windows import timed_seconds
from .observing import BUILD_SECONDS, block_seconds, merged

WINDOWS_AT_LEAST, WINDOWS_AT_MOST = 2, 200


class TimedFirst(Profiling):
    """A run on a bench that only tells time; the power of what it trained can be read afterwards on another."""

    def __init__(
        self, bench: MeasurementContext, seen: tuple[Observation, ...], hyper: Hyperparameters, seed: int
    ) -> None:
        super().__init__(replace(bench, count=False), seen, hyper, seed)
        self._trained: dict[Network, Experiment] = {}

    @property
    def quiet(self) -> tuple[Observation, ...]:
        return merged(o for o in self._seen if o.measurement.allocator == "tuned")

    def next(self) -> Experiment | None:
        """The network whose power would tell most about that of all the others."""
        observations = self.quiet
        open_ = np.array([_open(o) and o.network in self._trained for o in observations])
        if not np.any(open_):
            return None
        gains = np.where(open_, power_of(observations).gains(), -np.inf)
        return self._trained[observations[int(np.argmax(gains))].network]

    def cost(self, bench: MeasurementContext, experiment: Experiment) -> float:
        if bench.steady:
            return reading_by(bench.meter.update_seconds).whole + BUILD_SECONDS[experiment.allocator]
        step = self._model.answer(experiment.network).seconds
        return block_seconds(experiment.allocator, step, bench.yardstick_seconds, bench.meter.window_seconds)

    def read_power(self, bench: MeasurementContext, experiment: Experiment) -> None:
        del self._trained[experiment.network]  # once is enough
        try:
            if bench.steady:
                seen = bench.read_power(experiment, self._seconds(experiment.network))
            else:
                seen = bench.observe(experiment, self._model.answer(experiment.network).seconds)
        except (VariantDied, VariantFailed) as error:
            self._refuse(experiment, error)
        else:
            self._seen += [seen] if seen else []

    def _seconds(self, network: Network) -> float:
        return next(o.measurement.cpu_seconds for o in self.quiet if o.network == network and o.purpose == "network")

    def outcome(self) -> Outcome:
        """What is expected of joules: the error of time, and that of power."""
        outcome, observations = super().outcome(), self.quiet
        if not counted(observations):
            return outcome
        seconds = np.array([o.measurement.cpu_seconds for o in observations])
        _, doubts = power_of(observations).watts([o.network for o in observations], seconds)
        error = float(np.hypot(outcome.expected_error, np.sqrt(2 / np.pi) * np.mean(doubts)))
        return replace(outcome, expected_error=error)

    def _observe(self, experiment: Experiment, chosen: list[Experiment]) -> None:
        before = len(self._seen)
        super()._observe(experiment, chosen)
        if len(self._seen) > before and not experiment.system:
            self._trained.setdefault(experiment.network, experiment)


def profiled_slowly(bench: MeasurementContext, task: Task, hyper: Hyperparameters) -> Outcome:
    goal, run = task.goal, TimedFirst(bench, task.known, hyper, task.seed)
    seconds = timed_seconds(bench.meter, bench.steady, goal.seconds - (bench.clock() - task.began))
    run.run(Goal(seconds, goal.target / 2), bench.clock(), _within(task, bench.clock() - task.began))
    for number in range(WINDOWS_AT_MOST):
        experiment, spent = run.next(), bench.clock() - task.began
        enough = number >= WINDOWS_AT_LEAST
        if experiment is None or (enough and spent + run.cost(bench, experiment) > goal.seconds):
            break
        if goal.target and enough and run.outcome().expected_error < goal.target:
            break
        doing = f"power of {experiment.purpose} of {len(experiment.network.layers)} layers"
        task.on_progress(Progress(spent, goal.seconds, len(run.quiet), None, doing))
        run.read_power(bench, experiment)
    return run.outcome()


def _within(task: Task, before: float) -> Callable[[Progress], None]:
    """Progress of the first part, told as that of the whole."""
    return lambda now: task.on_progress(replace(now, elapsed=now.elapsed + before, seconds=task.goal.seconds))


def _open(observation: Observation) -> bool:
    """Whole networks are what users ask about; what their pieces draw lies beside it."""
    return observation.purpose == "network" and not observation.measurement.joules_rounds
