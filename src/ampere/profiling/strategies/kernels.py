"""What nn-Meter gathers: lone operations of random networks, and then more of those that are still badly known.

operations of random networks -> forests -> those off by more than a tenth -> others near them -> forests -> ...
"""

from __future__ import annotations

import time

import numpy as np

from ampere.core import Layer
from ampere.estimation.kernel_forests import KernelForests, load_forests
from ampere.profiling.isolated import Isolated, can_stand_alone, near, operations

from .strategy import Collected, MeasurementContext, Strategy, Task

FIRST_SHARE = 0.6  # of the time, for operations as they come
TREES = 15  # enough to tell what is badly known
LARGE_ERROR = 0.1
WORST = 10  # operations that others are tried near, before the forests grow again


def collect(context: MeasurementContext, task: Task) -> Collected:
    load_forests()
    isolated_run, thinking = Isolated(context, task, "kernel"), 0.0
    for layers in isolated_run.layers():
        lone = [o for layer in layers for o in operations(layer)]
        isolated_run.measure([o for o in lone if can_stand_alone(o)])
        if isolated_run.share_used() >= FIRST_SHARE:
            break
    while isolated_run.seen and isolated_run.share_used() < 1:
        began = time.monotonic()
        worst = badly_known(isolated_run)
        thinking += time.monotonic() - began
        isolated_run.measure([near(operation, isolated_run.rng) for operation in worst])
    return isolated_run.collected(thinking)


def badly_known(isolated_run: Isolated) -> list[Layer]:
    """Those that forests grown without them miss by more than a tenth, the most seconds first; else any."""
    lone = [o.network.layers[0] for o in isolated_run.seen]
    costs = np.array([o.measurement.busy_seconds for o in isolated_run.seen])
    forests = KernelForests(lone, [o.stage for o in isolated_run.seen], costs, TREES)
    missed = np.nan_to_num(np.abs(forests.out_of_bag - costs), nan=np.inf)
    order = [lone[i] for i in np.argsort(-missed) if missed[i] > LARGE_ERROR * costs[i]]
    return list(dict.fromkeys(order))[:WORST] or isolated_run.rng.sample(lone, min(WORST, len(lone)))


STRATEGY = Strategy(collect, protocols=("yardstick",), stages=True)  # stages are too short for the clock
