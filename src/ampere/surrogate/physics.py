"""The mean: every quantity a layer asks for has a price, and prices are never negative.

y_i     measured cost of network i, in seconds        Phi_ip  how much of quantity p network i asks for
beta_p  price of quantity p                           beta0_p its price before anything was measured
s       how much slower this device is than the one beta0 speaks of

beta = argmin_{beta >= 0}  sum_i ((Phi beta - y)_i / (w y_i))^2  +  sum_p ((beta_p - s beta0_p) / (t s beta0_p))^2
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from .features import PRIOR_PRICES, Array

RELATIVE_ERROR = 0.05  # w: how far physics alone is from the truth, typically
PRICE_FREEDOM = 3.0  # t: how far prices may stray from the prior, in multiples of it


def device_speed(rows: Array, costs: Array) -> float:
    """s: the median ratio of what was measured to what the prior prices say."""
    return float(np.median(costs / (rows @ PRIOR_PRICES)))


def fit_prices(rows: Array, costs: Array, weights: Array | None = None, before: Array = PRIOR_PRICES) -> Array:
    if len(costs) == 0:
        return before.copy()
    scale = (1.0 if weights is None else np.sqrt(weights)) / (RELATIVE_ERROR * costs)
    return near_prior(rows * scale[:, None], costs * scale, device_speed(rows, costs) * before, PRICE_FREEDOM)


def near_prior(rows: Array, costs: Array, prior: Array, freedom: float) -> Array:
    """Least squares, never negative, and near the prior as far as rows do not say otherwise."""
    used = np.flatnonzero(np.any(rows != 0, axis=0) & (prior > 0))
    ridge = np.eye(len(used)) / freedom
    # Unknowns are prices in units of their prior, so that the problem is well conditioned.
    design = np.vstack([rows[:, used] * prior[used], ridge])
    solution, _ = nnls(design, np.concatenate([costs, np.full(len(used), 1 / freedom)]))
    prices = prior.copy()
    prices[used] = solution * prior[used]
    return prices
