"""What nn-Meter gathers: lone operations of random networks, and then more of those that are still badly known.

operations of random networks -> forests -> those off by more than a tenth -> others near them -> forests -> ...
"""

from __future__ import annotations

import time

import numpy as np

from ampere.core import Layer
from ampere.estimation.kernel_forests import KernelForests, load_forests
from ampere.profiling.isolated import Gathering, can_stand_alone, near, operations

from .strategy import Collected, MeasurementContext, Strategy, Task

FIRST_SHARE = 0.6  # of the time, for operations as they come
TREES = 15  # enough to tell what is badly known
LARGE_ERROR = 0.1
WORST = 10  # operations that others are tried near, before the forests grow again


def gather(bench: MeasurementContext, task: Task) -> Collected:
    load_forests()
    gathering, thinking = Gathering(bench, task, "kernel"), 0.0
    for layers in gathering.layers():
        lone = [o for layer in layers for o in operations(layer)]
        gathering.measure([o for o in lone if can_stand_alone(o)])
        if gathering.share_used() >= FIRST_SHARE:
            break
    while gathering.seen and gathering.share_used() < 1:
        began = time.monotonic()
        worst = badly_known(gathering)
        thinking += time.monotonic() - began
        gathering.measure([near(operation, gathering.rng) for operation in worst])
    return gathering.gathered(thinking)


def badly_known(gathering: Gathering) -> list[Layer]:
    """Those that forests grown without them miss by more than a tenth, the most seconds first; else any."""
    lone = [o.network.layers[0] for o in gathering.seen]
    costs = np.array([o.measurement.cpu_seconds for o in gathering.seen])
    forests = KernelForests(lone, [o.stage for o in gathering.seen], costs, TREES)
    missed = np.nan_to_num(np.abs(forests.out_of_bag - costs), nan=np.inf)
    order = [lone[i] for i in np.argsort(-missed) if missed[i] > LARGE_ERROR * costs[i]]
    return list(dict.fromkeys(order))[:WORST] or gathering.rng.sample(lone, min(WORST, len(lone)))


STRATEGY = Strategy(gather, protocols=("yardstick",), stages=True)  # stages are too short for the clock
