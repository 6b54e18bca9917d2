"""Ours: layers, pieces and whole networks, whatever teaches most about the user's networks a second."""

from __future__ import annotations

from ampere.surrogate.hyperparameters import Hyperparameters

from ..loop import Outcome, Profiling
from ..slow_meters import profiled_slowly
from ..slowness import slow
from .campaign import Bench, Campaign, Gathered, Task


def gather(bench: Bench, task: Task) -> Gathered:
    fresh = Hyperparameters(vector_width=bench.vector_width, one_by_one=bench.one_by_one)
    hyper = Hyperparameters.from_json(task.fit) if task.fit else fresh
    outcome = (profiled_slowly if slow(bench.meter) else profiled)(bench, task, hyper)
    return Gathered(
        outcome.observations,
        outcome.model.hyper.to_json(),
        outcome.expected_error,
        outcome.thinking_seconds,
        tuple(outcome.refused),
        outcome.joules_model.hyper.to_json() if outcome.joules_model else {},
    )


def profiled(bench: Bench, task: Task, hyper: Hyperparameters) -> Outcome:
    return Profiling(bench, task.known, hyper, task.seed).run(task.goal, task.began, task.on_progress)


CAMPAIGN = Campaign(gather, ("tuned", "system"))
