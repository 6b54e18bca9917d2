"""Prices, the mean of the surrogate: every quantity of work has a price in seconds, and no price is negative.

    y_i     measured cost of network i, in seconds        Phi_ip  amount of quantity p in network i
    beta_p  price of quantity p                           beta0_p its prior price, before anything was measured
    s       how much slower this device is than the one of beta0

    beta = argmin_{beta >= 0}  sum_i ((Phi beta - y)_i / (w y_i))^2  +  sum_p ((beta_p - s beta0_p) / (t s beta0_p))^2

From layers measured in isolation prices can be learnt more closely, weighted by the covariance K of the residuals of
rough prices (deviations from physics, and noise). s_p then has three values: for overheads, for arithmetic, for memory.

    beta = argmin_{beta >= 0}  (Phi beta - y)^T K^-1 (Phi beta - y)  +  sum_p ((beta_p - s_p beta0_p) / (s_p beta0_p))^2

Where layers were measured in sums, such prices hide layers from each other (docs/decisions/0012), so they keep the
rough prices.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from .features import COLUMNS, PRIOR_PRICES, Array

RELATIVE_ERROR = 0.05  # w: typical relative error of physics alone
PRICE_FREEDOM = 3.0  # t: how far prices may be from the prior, in multiples of it
SPEED_FREEDOM = 10.0  # how far the three speeds s_p may be from the one speed s
LEAST_SPEED = 0.02  # of a speed s_p, relative to s: what seems to cost nothing stays uncertain
ISOLATED_FREEDOM = 1.0  # how far prices of isolated layers may be from the prior at the three speeds

STARTING, ARITHMETIC, MEMORY = range(3)
GROUP_OF_QUANTITY = {"step": STARTING, "launches": STARTING, "tensors": STARTING}
GROUP_OF_QUANTITY |= dict.fromkeys(
    ("flops", "half_padded_flops", "padded_flops", "remainders", "remainder_flops"), ARITHMETIC
)
SPEED_GROUPS: Array = np.eye(3)[[GROUP_OF_QUANTITY.get(column.split(".")[-1], MEMORY) for column in COLUMNS]]


def device_speed(rows: Array, costs: Array) -> float:
    """The speed s: the median ratio of measured costs to costs at the prior prices."""
    return float(np.median(costs / (rows @ PRIOR_PRICES)))


def fit_prices(rows: Array, costs: Array, weights: Array | None = None, before: Array = PRIOR_PRICES) -> Array:
    """The price of each quantity, from the costs of networks; `before` are the prior prices."""
    if len(costs) == 0:
        return before.copy()
    scale = (1.0 if weights is None else np.sqrt(weights)) / (RELATIVE_ERROR * costs)
    return near_prior(rows * scale[:, None], costs * scale, device_speed(rows, costs) * before, PRICE_FREEDOM)


def near_prior(rows: Array, costs: Array, prior: Array, freedom: float) -> Array:
    """Non-negative least squares, regularized towards the prior prices."""
    used = np.flatnonzero(np.any(rows != 0, axis=0) & (prior > 0))
    ridge = np.eye(len(used)) / freedom
    # Unknowns are prices in units of their prior, so that the problem is well conditioned.
    design = np.vstack([rows[:, used] * prior[used], ridge])
    solution, _ = nnls(design, np.concatenate([costs, np.full(len(used), 1 / freedom)]))
    prices = prior.copy()
    prices[used] = solution * prior[used]
    return prices


def isolated_prices(rows: Array, costs: Array, residual_covariance: Array) -> Array:
    """The price of each quantity, from the costs of isolated layers and the covariance K of their residuals."""
    root = cholesky(residual_covariance, lower=True)
    whitened = solve_triangular(root, np.column_stack([rows, costs]), lower=True, check_finite=False)
    return near_prior(whitened[:, :-1], whitened[:, -1], _speeds(rows, costs) * PRIOR_PRICES, ISOLATED_FREEDOM)


def _speeds(rows: Array, costs: Array) -> Array:
    """The speed s_p of every quantity: the three speeds with the least relative error."""
    one = device_speed(rows, costs)
    by_group = (rows * PRIOR_PRICES) @ SPEED_GROUPS * (one / (RELATIVE_ERROR * costs))[:, None]
    relative = near_prior(by_group, np.full(len(costs), 1 / RELATIVE_ERROR), np.ones(3), SPEED_FREEDOM)
    return np.asarray(one * (SPEED_GROUPS @ np.maximum(relative, LEAST_SPEED)))
