"""What NeuralPower gathers: forward, backward and update of the layers of random networks, each layer alone."""

from __future__ import annotations

from ..gathering import Gathering
from .campaign import Bench, Campaign, Gathered, Task


def gather(bench: Bench, task: Task) -> Gathered:
    gathering = Gathering(bench, task, "stage")
    for layers in gathering.layers():
        gathering.measure([layer for layer in layers if layer.kind != "opaque"])
        if gathering.share_used() >= 1:
            break
    return gathering.gathered()


CAMPAIGN = Campaign(gather, protocols=("yardstick",), stages=True)  # stages are too short for the clock
