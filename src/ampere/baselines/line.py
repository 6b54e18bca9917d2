"""A count and a constant, neither of them priced below nothing, fitted to relative errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import nnls

from ampere.core import Network
from ampere.estimation.features import Array

from .method import Estimator, Evidence

Counts = Callable[[Sequence[Network]], Array]


def fit_line(counts: Counts, evidence: Evidence) -> Estimator:
    costs, seen = evidence.costs, counts(evidence.networks)
    unit = float(np.median(seen)) or 1.0
    design = np.stack([np.ones(len(costs)), seen / unit], axis=1) / costs[:, None]
    (intercept, slope), _ = nnls(design, np.ones(len(costs)))
    return lambda networks: intercept + slope * counts(networks) / unit
