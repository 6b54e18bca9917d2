"""The mean: every quantity a layer asks for has a price, and prices are never negative.

y_i     measured cost of network i, in seconds        Phi_ip  how much of quantity p network i asks for
beta_p  price of quantity p                           beta0_p its price before anything was measured
s_p     how much dearer this device is than the one beta0 speaks of
K       covariance of what physics leaves over: what layers deviate from it, and noise

beta = argmin_{beta >= 0}  (Phi beta - y)^T K^-1 (Phi beta - y)  +  sum_p ((beta_p - s_p beta0_p) / (t s_p beta0_p))^2

Roughly, K is diag(w y)^2 and the device has one speed s. Then prices are settled: with K as it follows from these, and
three speeds, of starting things, of arithmetic and of memory.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import nnls

from .features import COLUMNS, PRIOR_PRICES, Array

RELATIVE_ERROR = 0.05  # w: how far physics alone is from the truth, typically
PRICE_FREEDOM = 3.0  # t: how far prices may stray from the prior, in multiples of it
SETTLED_FREEDOM = 1.0  # t, once three speeds are known
SPEED_FREEDOM = 10.0  # how far the three speeds may be from the one
LEAST_SPEED = 0.02  # of the three, against the one: what seems to cost nothing is still doubted

STARTING, ARITHMETIC, MEMORY = range(3)
ASKED = {"step": STARTING, "launches": STARTING, "tensors": STARTING}
ASKED |= dict.fromkeys(("flops", "half_padded_flops", "padded_flops", "remainders"), ARITHMETIC)
SORTS: Array = np.eye(3)[[ASKED.get(column.split(".")[-1], MEMORY) for column in COLUMNS]]  # (columns, speeds)


def device_speed(rows: Array, costs: Array) -> float:
    """s: the median ratio of what was measured to what the prior prices say."""
    return float(np.median(costs / (rows @ PRIOR_PRICES)))


def fit_prices(rows: Array, costs: Array) -> Array:
    if len(costs) == 0:
        return PRIOR_PRICES.copy()
    scale = 1.0 / (RELATIVE_ERROR * costs)
    prior = device_speed(rows, costs) * PRIOR_PRICES
    return _fit(rows * scale[:, None], costs * scale, prior, PRICE_FREEDOM)


def settle_prices(rows: Array, costs: Array, whiten: Callable[[Array], Array]) -> Array:
    """`whiten` multiplies by the inverse of a root of K."""
    return _fit(whiten(rows), whiten(costs), _three_speeds(rows, costs) * PRIOR_PRICES, SETTLED_FREEDOM)


def _three_speeds(rows: Array, costs: Array) -> Array:
    """s_p, of every quantity: the three that tell relative errors best."""
    one = device_speed(rows, costs)
    asked = (rows * PRIOR_PRICES) @ SORTS * (one / (RELATIVE_ERROR * costs))[:, None]
    against = _ridge(asked, np.full(len(costs), 1 / RELATIVE_ERROR), SPEED_FREEDOM)
    return np.asarray(one * (SORTS @ np.maximum(against, LEAST_SPEED)))


def _fit(rows: Array, costs: Array, prior: Array, freedom: float) -> Array:
    """Unknowns are prices in units of their prior, so that the problem is well conditioned."""
    used = np.flatnonzero(np.any(rows != 0, axis=0))
    prices = prior.copy()
    prices[used] *= _ridge(rows[:, used] * prior[used], costs, freedom)
    return prices


def _ridge(design: Array, wanted: Array, freedom: float) -> Array:
    """Not negative, and near 1 as far as `design` does not say otherwise."""
    unknowns = design.shape[1]
    rows = np.vstack([design, np.eye(unknowns) / freedom])
    solution, _ = nnls(rows, np.concatenate([wanted, np.full(unknowns, 1 / freedom)]))
    return np.asarray(solution)
