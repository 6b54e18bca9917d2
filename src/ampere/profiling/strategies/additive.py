"""Ampere's own strategy: layers, pieces and whole networks, chosen to be most informative per second."""

from __future__ import annotations

from ampere.estimation.hyperparameters import Hyperparameters
from ampere.profiling.loop import Profiling
from ampere.profiling.meter_windows import slow
from ampere.profiling.slow_meters import profile_with_slow_meter

from .strategy import Collected, MeasurementContext, Strategy, Task


def collect(context: MeasurementContext, task: Task) -> Collected:
    """Runs the profiling loop, or its variant for slow meters."""
    fresh = Hyperparameters(vector_width=context.vector_width, one_by_one=context.one_by_one)
    hyper = Hyperparameters.from_json(task.fit) if task.fit else fresh
    if slow(context.meter):
        return profile_with_slow_meter(context, task, hyper)
    return Profiling(context, task.known, hyper, task.seed).run(task.goal, task.began, task.on_progress)


STRATEGY = Strategy(collect, ("tuned", "system"))
