"""Prices, the mean of the surrogate: every quantity of work has a price in seconds, and no price is negative.

    y_i     measured cost of network i, in seconds        Phi_ip  amount of quantity p in network i
    beta_p  price of quantity p                           beta0_p its prior price, before anything was measured
    s       how much slower this device is than the one of beta0

    beta = argmin_{beta >= 0}  sum_i ((Phi beta - y)_i / (w y_i))^2  +  sum_p ((beta_p - s beta0_p) / (t s beta0_p))^2

Networks are fitted near the prices that a known processor has (`cpu_prices.csv`), at this device's speed of overheads,
of arithmetic and of memory, where that makes their costs more probable: few measurements are of rare kinds, and what
those cost elsewhere says more than a guess that is the same for all kinds (docs/decisions/0058).

From layers measured in isolation prices can be learnt more closely, on logarithms, because costs of single layers span
decades: weighted by the covariance K of the log residuals of rough prices (deviations from physics, and noise). s_p
then has three values, found first in the same way: for overheads, for arithmetic, for memory.

    beta_p = s_p beta0_p exp(x_p),   e = log y - log(Phi beta),   x = argmin  e^T K^-1 e  +  sum_p x_p^2 / f^2

Where layers were measured in sums, such prices hide layers from each other (docs/decisions/0012), so they keep the
rough prices.
"""

from __future__ import annotations

import csv
from functools import lru_cache
from importlib.resources import files

import numpy as np

from ampere.core.kinds import GROUPS

from .features import COLUMNS, PRIOR_PRICES, Array

RELATIVE_ERROR = 0.05  # w: typical relative error of physics alone
PRICE_FREEDOM = 3.0  # t: how far prices may be from the prior, in multiples of it
# t of updating a tensor. Nearly every layer of a profile has weights of its own, so measurements hardly separate it
# from starting the layer's operations; users' layers have frozen weights, or the same ones many times.
TENSOR_FREEDOM = 0.2
KNOWN_FREEDOM, KNOWN_TENSOR_FREEDOM = 0.2, 0.1  # t of both around the prices of a known processor
KIND_FREEDOM = 0.5  # t of all prices of a kind together: libraries are better at one kind or another
LEAST_KNOWN = 0.02  # a price there, relative to the prior one at its speed: another device may have what it lacks
FAR = 1.0  # log of a cost over what prices say, beyond which it is no evidence for others
KNOWN_NATS = 15.0  # by which they must be likelier: a few measurements fit many prices
LEAST_SPEED = 0.1  # of overheads, arithmetic or memory, relative to that of a whole step
SPEED_FREEDOM = 2.0  # f of the three speeds s_p around the one speed s
SPEED_ERROR = 0.1  # relative error of physics at three speeds
ISOLATED_FREEDOM = 1.0  # f of prices of isolated layers around the prior at the three speeds
LARGEST_LOG_FACTOR = 6.0

STARTING, ARITHMETIC, MEMORY = range(3)
GROUP_OF_QUANTITY = {"step": STARTING, "launches": STARTING, "tensors": STARTING}
GROUP_OF_QUANTITY |= dict.fromkeys(
    ("flops", "half_padded_flops", "padded_flops", "remainders", "remainder_flops"), ARITHMETIC
)
SPEED_GROUPS: Array = np.eye(3)[[GROUP_OF_QUANTITY.get(column.split(".")[-1], MEMORY) for column in COLUMNS]]


KIND_OF_PRICE = np.array([column.split(".")[0] if column.split(".")[0] in GROUPS else column for column in COLUMNS])
SAME_KIND: Array = (KIND_OF_PRICE[:, None] == KIND_OF_PRICE[None, :]) & np.isin(KIND_OF_PRICE, GROUPS)[:, None]


def device_speed(rows: Array, costs: Array) -> float:
    """The speed s: the median ratio of measured costs to costs at the prior prices."""
    return float(np.median(costs / (rows @ PRIOR_PRICES)))


def at_prior_level(prices: Array, rows: Array) -> Array:
    """Another device's prices as prior ones: their ratios are kept, their level is that of the prior."""
    return np.asarray(prices * np.median((rows @ PRIOR_PRICES) / (rows @ prices)))


@lru_cache(maxsize=1)
def _cpu_prices() -> Array:
    """The prices of a known processor; not a number where they were not measured."""
    text = files(__package__).joinpath("cpu_prices.csv").read_text(encoding="utf-8")
    known = {row["column"]: float(row["seconds"]) for row in csv.DictReader(text.splitlines())}
    return np.array([known.get(column, np.nan) for column in COLUMNS])


def known_prices(prior: Array = PRIOR_PRICES) -> Array:
    """The prices of a known processor, and at its speed the prior ones of what was not measured there."""
    found = _cpu_prices()
    usual = np.nanmedian(found / np.where(prior > 0, prior, np.nan)) * prior
    return np.asarray(np.where(np.isnan(found), usual, np.maximum(found, LEAST_KNOWN * usual)))


def fit_prices(rows: Array, costs: Array, weights: Array | None = None, before: Array = PRIOR_PRICES) -> Array:
    """The price of each quantity, from the costs of networks; `before` are the prior prices."""
    if len(costs) == 0:
        return before.copy()
    scale = (1.0 if weights is None else np.sqrt(weights)) / (RELATIVE_ERROR * costs)
    prior = device_speed(rows, costs) * before
    return near_prior(rows * scale[:, None], costs * scale, prior, _freedom(PRICE_FREEDOM, TENSOR_FREEDOM))


def likeliest_prices(rows: Array, costs: Array, prior: Array) -> Array:
    """The price of each quantity, from the costs of networks: near the prior prices or near those of a known processor
    at this device's three speeds, where these make the costs clearly more probable."""
    scale = 1 / (RELATIVE_ERROR * costs)
    rows, relative = rows * scale[:, None], costs * scale
    known = known_prices(prior)
    groups = (rows * known) @ SPEED_GROUPS
    one = np.full(len(groups.T), np.median(relative / groups.sum(axis=1)))
    speeds = np.maximum(near_prior(groups, relative, one, SPEED_FREEDOM**2 * np.eye(len(one))), LEAST_SPEED * one)
    options = [
        (float(np.median(relative / (rows @ prior))) * prior, _freedom(PRICE_FREEDOM, TENSOR_FREEDOM)),
        ((SPEED_GROUPS @ speeds) * known, _freedom(KNOWN_FREEDOM, KNOWN_TENSOR_FREEDOM) + KIND_FREEDOM**2 * SAME_KIND),
    ]
    fitted = [near_prior(rows, relative, *option) for option in options]
    # What no prices explain, such as a step that another program delayed, does not decide between them.
    unexplained = np.min([np.abs(relative - rows @ prices) for prices in fitted], axis=0)
    far = np.abs(np.log(relative / (rows @ fitted[1]))) > FAR
    noise = np.where(far, relative, np.maximum(1.0, unexplained))
    evidence = [_log_evidence(rows, relative, noise, *option) for option in options]
    return fitted[int(evidence[1] > evidence[0] + KNOWN_NATS)]


def _log_evidence(rows: Array, costs: Array, noise: Array, prior: Array, freedom: Array) -> float:
    """Log probability of the costs, but for a constant, if prices are normal around the prior ones."""
    parts = rows * prior
    covariance = parts @ freedom @ parts.T + np.diag(noise**2)
    apart = costs - rows @ prior
    return float(-0.5 * (apart @ np.linalg.solve(covariance, apart) + np.linalg.slogdet(covariance)[1]))


def _freedom(usual: float, tensors: float) -> Array:
    """The covariance of prices around the prior ones, in multiples of these."""
    return np.diag(np.where([column == "update.tensors" for column in COLUMNS], tensors, usual) ** 2)


def near_prior(rows: Array, costs: Array, prior: Array, freedom: Array) -> Array:
    """Non-negative least squares, regularized towards the prior prices."""
    from scipy.optimize import nnls

    used = np.flatnonzero(np.any(rows != 0, axis=0) & (prior > 0))
    # Its square is the inverse of the freedom.
    ridge = np.linalg.inv(np.linalg.cholesky(freedom[np.ix_(used, used)]))
    # Unknowns are prices in units of their prior, so that the problem is well conditioned.
    design = np.vstack([rows[:, used] * prior[used], ridge])
    solution, _ = nnls(design, np.concatenate([costs, ridge.sum(axis=1)]))
    prices = prior.copy()
    prices[used] = solution * prior[used]
    return prices


def isolated_prices(rows: Array, costs: Array, covariance: Array, before: Array = PRIOR_PRICES) -> Array:
    """The price of each quantity, from the costs of isolated layers and the covariance K of their log residuals."""
    used = np.flatnonzero(np.any(rows != 0, axis=0) & (before > 0))
    one = device_speed(rows, costs)
    groups = one * (rows * before) @ SPEED_GROUPS
    some, speeds = np.flatnonzero(np.any(groups > 0, axis=0)), np.ones(len(groups.T))
    speeds[some] = _factors(groups[:, some], costs, SPEED_ERROR**2 * np.eye(len(costs)), SPEED_FREEDOM)
    prices = one * (SPEED_GROUPS @ speeds) * before
    prices[used] *= _factors(rows[:, used] * prices[used], costs, covariance, ISOLATED_FREEDOM)
    return prices


def _factors(parts: Array, costs: Array, covariance: Array, freedom: float) -> Array:
    """The most probable factors on the columns of `parts`, whose rows sum to about the costs."""
    from scipy.linalg import cholesky, solve_triangular
    from scipy.optimize import minimize

    root = cholesky(covariance, lower=True)
    logs = np.log(costs)

    def loss(x: Array) -> tuple[float, Array]:
        scaled = parts * np.exp(x)
        totals = scaled.sum(axis=1)
        white = solve_triangular(root, logs - np.log(totals), lower=True, check_finite=False)
        pull = solve_triangular(root, white, lower=True, trans=1, check_finite=False)
        value = 0.5 * float(white @ white + x @ x / freedom**2)
        return value, x / freedom**2 - (scaled / totals[:, None]).T @ pull

    bounds = [(-LARGEST_LOG_FACTOR, LARGEST_LOG_FACTOR)] * parts.shape[1]
    found = minimize(
        loss, np.zeros(parts.shape[1]), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 60}
    )
    return np.asarray(np.exp(found.x))
