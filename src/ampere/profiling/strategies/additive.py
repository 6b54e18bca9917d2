"""Ours: layers, pieces and whole networks, whatever teaches most about the user's networks a second."""

from __future__ import annotations

from ampere.estimation.hyperparameters import Hyperparameters
from ampere.profiling.loop import Outcome, Profiling
from ampere.profiling.meter_windows import slow
from ampere.profiling.slow_meters import profiled_slowly

from .strategy import Collected, MeasurementContext, Strategy, Task


def gather(bench: MeasurementContext, task: Task) -> Collected:
    fresh = Hyperparameters(vector_width=bench.vector_width, one_by_one=bench.one_by_one)
    hyper = Hyperparameters.from_json(task.fit) if task.fit else fresh
    outcome = (profiled_slowly if slow(bench.meter) else profiled)(bench, task, hyper)
    return Collected(
        outcome.observations,
        outcome.model.hyper.to_json(),
        outcome.expected_error,
        outcome.thinking_seconds,
        tuple(outcome.refused),
        outcome.joules_model.hyper.to_json() if outcome.joules_model else {},
    )


def profiled(bench: MeasurementContext, task: Task, hyper: Hyperparameters) -> Outcome:
    return Profiling(bench, task.known, hyper, task.seed).run(task.goal, task.began, task.on_progress)


STRATEGY = Strategy(gather, ("tuned", "system"))
