"""FLOPs and a constant, neither of them negative: the honest rival."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from .flops import flops
from .method import Estimator, Evidence, Method


def fit(evidence: Evidence) -> Estimator:
    costs, arithmetic = evidence.costs, flops(evidence.networks)
    unit = float(np.median(arithmetic)) or 1.0
    design = np.stack([np.ones(len(costs)), arithmetic / unit], axis=1) / costs[:, None]
    (intercept, slope), _ = nnls(design, np.ones(len(costs)))
    return lambda networks: intercept + slope * flops(networks) / unit


METHOD = Method("flops_intercept", "FLOPs and a constant", "networks", fit)
