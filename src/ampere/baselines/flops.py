"""FLOPs: energy is proportional to arithmetic (the usual proxy), or that plus a constant (the honest rival).

Both are fitted to relative errors, which is what they are judged by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import nnls

from ampere.network import Network, work
from ampere.surrogate.features import Array


def flops(networks: Sequence[Network]) -> Array:
    return np.array([float(sum(work(layer).flops for layer in n.layers)) for n in networks])


def fit_flops(networks: Sequence[Network], costs: Array) -> Callable[[Sequence[Network]], Array]:
    relative = flops(networks) / costs
    slope = float(np.sum(relative) / np.sum(relative**2))
    return lambda others: slope * flops(others)


def fit_flops_intercept(networks: Sequence[Network], costs: Array) -> Callable[[Sequence[Network]], Array]:
    unit = float(np.median(flops(networks))) or 1.0
    design = np.stack([np.ones(len(costs)), flops(networks) / unit], axis=1) / costs[:, None]
    (intercept, slope), _ = nnls(design, np.ones(len(costs)))
    return lambda others: intercept + slope * flops(others) / unit
