"""Methods that count one thing in a network: FLOPs, layers or parameters, alone or with a constant.

cost = slope * count                       (flops)
cost = constant + slope * count            (flops_intercept, layers, parameters; neither is negative)

All are fitted to relative errors, which is what they are judged by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import nnls

from ampere.core import Network, work
from ampere.estimation.features import Array

from .method import Estimator, Evidence, Method

Counts = Callable[[Sequence[Network]], Array]


def flops(networks: Sequence[Network]) -> Array:
    return np.array([float(sum(work(layer).flops for layer in n.layers)) for n in networks])


def layers(networks: Sequence[Network]) -> Array:
    return np.array([float(sum(layer.kind != "nonparametric" for layer in n.layers)) for n in networks])


def parameters(networks: Sequence[Network]) -> Array:
    return np.array([float(sum(work(layer).parameters for layer in n.layers)) for n in networks])


def fit_proportional(counts: Counts, evidence: Evidence) -> Estimator:
    relative = counts(evidence.networks) / evidence.costs
    slope = float(np.sum(relative) / (np.sum(relative**2) or 1.0))  # all counts may be 0
    return lambda networks: slope * counts(networks)


def fit_line(counts: Counts, evidence: Evidence) -> Estimator:
    costs, seen = evidence.costs, counts(evidence.networks)
    unit = float(np.median(seen)) or 1.0
    design = np.stack([np.ones(len(costs)), seen / unit], axis=1) / costs[:, None]
    (intercept, slope), _ = nnls(design, np.ones(len(costs)))
    return lambda networks: intercept + slope * counts(networks) / unit


FLOPS = Method("flops", "proportional to FLOPs", "networks", lambda seen: fit_proportional(flops, seen))
FLOPS_INTERCEPT = Method("flops_intercept", "FLOPs and a constant", "networks", lambda seen: fit_line(flops, seen))
LAYERS = Method("layers", "number of layers and a constant", "networks", lambda seen: fit_line(layers, seen))
PARAMETERS = Method(
    "parameters", "trained parameters and a constant", "networks", lambda seen: fit_line(parameters, seen)
)
