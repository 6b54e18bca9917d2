"""The mean of the surrogate: every quantity a layer asks for has a price, and prices are never negative."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from .features import COLUMNS, PRIOR_PRICES, Array

# The mean: every quantity a layer asks for has a price, and prices are never negative.
#
# y_i     measured cost of network i, in seconds        Phi_ip  how much of quantity p network i asks for
# beta_p  price of quantity p                           beta0_p its price before anything was measured
# s       how much slower this device is than the one beta0 speaks of
#
# beta = argmin_{beta >= 0}  sum_i ((Phi beta - y)_i / (w y_i))^2  +  sum_p ((beta_p - s beta0_p) / (t s beta0_p))^2

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


# Prices learnt from layers measured alone: weighed by what they leave over.
#
# y_i     measured cost of layer i                      Phi_ip  how much of quantity p it asks for
# beta_p  price of quantity p                           beta0_p its price before anything was measured
# s_p     how much dearer this device is than the one beta0 speaks of: one speed for starting things, one for
#         arithmetic, one for memory
# K       covariance of what rough prices leave over: what layers deviate from physics, and noise
#
# beta = argmin_{beta >= 0}  (Phi beta - y)^T K^-1 (Phi beta - y)  +  sum_p ((beta_p - s_p beta0_p) / (s_p beta0_p))^2
#
# Where layers were measured in sums, such prices hide layers from each other (docs/decisions/0012): rough ones stay.

SPEED_FREEDOM = 10.0  # how far the three speeds may be from the one
LEAST_SPEED = 0.02  # of the three, against the one: what seems to cost nothing is still doubted
SETTLED_FREEDOM = 1.0  # how far prices may stray from the three speeds

STARTING, ARITHMETIC, MEMORY = range(3)
ASKED = {"step": STARTING, "launches": STARTING, "tensors": STARTING}
ASKED |= dict.fromkeys(("flops", "half_padded_flops", "padded_flops", "remainders", "remainder_flops"), ARITHMETIC)
SORTS: Array = np.eye(3)[[ASKED.get(column.split(".")[-1], MEMORY) for column in COLUMNS]]  # (columns, speeds)


def settled_prices(rows: Array, costs: Array, left_over: Array) -> Array:
    root = cholesky(left_over, lower=True)
    whitened = solve_triangular(root, np.column_stack([rows, costs]), lower=True, check_finite=False)
    return near_prior(whitened[:, :-1], whitened[:, -1], _speeds(rows, costs) * PRIOR_PRICES, SETTLED_FREEDOM)


def _speeds(rows: Array, costs: Array) -> Array:
    """s_p, of every quantity: the three that tell relative errors best."""
    one = device_speed(rows, costs)
    asked = (rows * PRIOR_PRICES) @ SORTS * (one / (RELATIVE_ERROR * costs))[:, None]
    against = near_prior(asked, np.full(len(costs), 1 / RELATIVE_ERROR), np.ones(3), SPEED_FREEDOM)
    return np.asarray(one * (SORTS @ np.maximum(against, LEAST_SPEED)))
