"""What NeuralPower gathers: forward, backward and update of the layers of random networks, each layer alone."""

from __future__ import annotations

from ampere.profiling.isolated import Gathering

from .strategy import Collected, MeasurementContext, Strategy, Task


def gather(bench: MeasurementContext, task: Task) -> Collected:
    gathering = Gathering(bench, task, "stage")
    for layers in gathering.layers():
        gathering.measure([layer for layer in layers if layer.kind != "opaque"])
        if gathering.share_used() >= 1:
            break
    return gathering.gathered()


STRATEGY = Strategy(gather, protocols=("yardstick",), stages=True)  # stages are too short for the clock
