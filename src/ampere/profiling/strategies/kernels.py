"""nn-Meter's strategy: isolated operations of random networks, then more of those with large errors.

operations of random networks -> forests -> those with errors above 10 % -> others near them -> forests -> ...
"""

from __future__ import annotations

import time

import numpy as np

from ampere.core import Layer
from ampere.estimation.kernel_forests import KernelForests, load_forests
from ampere.profiling.isolated import Isolated, can_stand_alone, near, operations

from .strategy import Collected, MeasurementContext, Strategy, Task

FIRST_SHARE = 0.6  # of the time, for operations of random networks
TREES = 15  # enough to find large errors
LARGE_ERROR = 0.1  # relative
WORST = 10  # operations that others are tried near, before new forests are grown


def collect(context: MeasurementContext, task: Task) -> Collected:
    """Measures operations of random networks, then others near those with the largest errors."""
    load_forests()
    isolated_run, thinking = Isolated(context, task, "kernel"), 0.0
    for layers in isolated_run.layers():
        isolated_run.measure([o for layer in layers for o in operations(layer) if can_stand_alone(o)])
        if isolated_run.share_used() >= FIRST_SHARE:
            break
    while isolated_run.seen and isolated_run.share_used() < 1:
        began = time.monotonic()
        worst = largest_errors(isolated_run)
        thinking += time.monotonic() - began
        isolated_run.measure([near(operation, isolated_run.rng) for operation in worst])
    return isolated_run.collected(thinking)


def largest_errors(isolated_run: Isolated) -> list[Layer]:
    """The operations whose out-of-bag error is large, the most seconds first; random ones where there are none."""
    measured = [o.network.layers[0] for o in isolated_run.seen]
    costs = np.array([o.measurement.busy_seconds for o in isolated_run.seen])
    forests = KernelForests(measured, [o.stage for o in isolated_run.seen], costs, TREES)
    missed = np.nan_to_num(np.abs(forests.out_of_bag - costs), nan=np.inf)
    order = [measured[i] for i in np.argsort(-missed) if missed[i] > LARGE_ERROR * costs[i]]
    return list(dict.fromkeys(order))[:WORST] or isolated_run.rng.sample(measured, min(WORST, len(measured)))


STRATEGY = Strategy(collect, timings=("yardstick",), stages=True)  # a stage is too short for wall time
