"""Kernels, in the manner of nn-Meter: each operation measured alone, a random forest for each kind, summed.

t(network) = sum over operations o and stages s of  forest_of(kind(o), s)(configuration(o))
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ampere.core import Layer
from ampere.estimation.kernel_forests import KernelForests
from ampere.profiling.isolated import operations, stages_of

from .method import Estimator, Evidence, Method


def fit(evidence: Evidence) -> Estimator:
    alone = [network.layers[0] for network in evidence.networks]
    forests = KernelForests(alone, [observation.stage for observation in evidence.observations], evidence.costs)

    @lru_cache(maxsize=65536)
    def seconds(layer: Layer) -> float:
        return sum(forests.seconds(o, stage) for o in operations(layer) for stage in stages_of(o))

    return lambda networks: np.array([sum(seconds(layer) for layer in n.layers) for n in networks], dtype=float)


METHOD = Method("kernels", "kernels as nn-Meter: lone operations, forests, summed", "kernels", fit)
