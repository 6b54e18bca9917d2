"""NeuralPower's strategy: forward, backward and update of the layers of random networks, each layer alone."""

from __future__ import annotations

from ampere.profiling.isolated import Isolated

from .strategy import Collected, MeasurementContext, Strategy, Task


def collect(context: MeasurementContext, task: Task) -> Collected:
    """Measures every stage of layers of random networks, until the time is over."""
    isolated_run = Isolated(context, task, "stage")
    for layers in isolated_run.layers():
        isolated_run.measure([layer for layer in layers if layer.kind != "opaque"])
        if isolated_run.share_used() >= 1:
            break
    return isolated_run.collected()


STRATEGY = Strategy(collect, timings=("yardstick",), stages=True)  # a stage is too short for wall time
