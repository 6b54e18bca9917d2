"""FLOPs: energy is proportional to arithmetic, the usual proxy. Fitted to relative errors, which it is judged by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ampere.core import Network, work
from ampere.estimation.features import Array

from .method import Estimator, Evidence, Method


def flops(networks: Sequence[Network]) -> Array:
    return np.array([float(sum(work(layer).flops for layer in n.layers)) for n in networks])


def fit(evidence: Evidence) -> Estimator:
    relative = flops(evidence.networks) / evidence.costs
    slope = float(np.sum(relative) / np.sum(relative**2))
    return lambda networks: slope * flops(networks)


METHOD = Method("flops", "proportional to FLOPs", "networks", fit)
