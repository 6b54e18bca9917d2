"""Where an estimate's variance comes from: cov(part, total) of every part; they sum to the variance of the total."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ampere.core import Layer, Network
from ampere.core.kinds import group

from .additive import Additive
from .features import STEP, Array, NetworkFeatures, layer_row, network_features
from .gaussian_process import near_sums


@dataclass(frozen=True)
class VarianceShares:
    """Shares of the variance, which sum to 1. The share of a part that balances others may be negative."""

    variance: float  # of the total, in seconds squared, before it is calibrated
    layers: dict[Layer, float]  # all runs of a distinct layer together
    whole: float  # how the network as a whole deviates from its layers
    step: float  # fixed cost of a step, outside its layers
    measuring: float  # noise of a measurement that checks the estimate


def variance_shares(model: Additive, network: Network, system: bool) -> VarianceShares:
    """The share of each layer, the whole, the step and the noise in the variance of an estimate."""
    features = network_features(network, model.hyper.vector_width)
    posteriors = model.posteriors_of(features.layers)
    # whole_deviation returns the whole's and the step's covariances as one vector.
    _, whole_and_step, own = model.whole_deviation(features, system)
    total = whole_and_step + sum(
        (c * p.whitened for c, p in zip(features.counts, posteriors, strict=True)), np.zeros_like(whole_and_step)
    )
    prices = model.price_stddev**2 * features.row
    residuals, layers = _residuals(model, features), {}
    for layer, count, posterior, residual in zip(features.layers, features.counts, posteriors, residuals, strict=True):
        prior = float(layer_row(layer, model.hyper.vector_width) @ prices + residual)
        layers[layer] = float(count) * (prior - float(posterior.whitened @ total))
    step = float(STEP @ prices) - float(model.step.whitened @ total)
    whole = own - float((whole_and_step - model.step.whitened) @ total)
    seconds = model.answer(network, system).seconds
    scale = float(model.scale(seconds, features.row @ model.prices)) ** 2
    noise = float(model.measurement_variance(seconds)) / scale
    sum_ = sum(layers.values()) + step + whole + noise
    return VarianceShares(
        sum_ * scale, {k: v / sum_ for k, v in layers.items()}, whole / sum_, step / sum_, noise / sum_
    )


def kept_by_measuring(
    model: Additive, network: Network, system: bool, more: Sequence[tuple[Network, bool]], counts: Sequence[int]
) -> list[float]:
    """The shares of an estimate's variance that would be left, had the first so many of these been measured too.

    v' = v - k' (K + N)^-1 k: what is known after a measurement depends on where it is made, not on what it shows. The
    noise N is that of the measurements so far, and what was learnt of noise and of layers stays as it is.
    """
    from scipy.linalg import solve

    systems = np.array([system, *(plain for _, plain in more)], dtype=float)
    means, posterior = model.joint([network, *(each for each, _ in more)], systems)
    noise = (np.median(model.data.noise) + model.irreducible_variance(means)) * means**2
    own = float(posterior[0, 0])
    before = own + float(model.measurement_variance(means[0]))
    kept = []
    for count in counts:
        measured = slice(1, 1 + count)
        shared, among = posterior[0, measured], posterior[measured, measured] + np.diag(noise[measured])
        gained = float(shared @ solve(among, shared, assume_a="pos")) if count else 0.0
        kept.append(1.0 - min(gained, own) / before)
    return kept


def _residuals(model: Additive, features: NetworkFeatures) -> Array:
    """Prior covariance of each layer's residual with the summed residuals of all layers of its kind."""
    posteriors = model.posteriors_of(features.layers)
    kinds = np.array([group(layer) for layer in features.layers])
    physics, found = np.array([p.physics for p in posteriors]), np.zeros(len(posteriors))
    for kind in set(kinds):
        alike = np.flatnonzero(kinds == kind)
        positions = np.array([posteriors[i].scaled_position for i in alike])
        near = near_sums(positions, (features.counts * physics)[alike], model.hyper.own)
        found[alike] = model.hyper.residual_of(kind) ** 2 * physics[alike] * near
    return found
