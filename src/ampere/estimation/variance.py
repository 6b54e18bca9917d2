"""What an estimate's variance is made of: cov(part, total) of every part, which sum to the variance of the total."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ampere.core import Layer, Network
from ampere.core.kinds import group

from .additive import Additive
from .features import STEP, Array, NetworkFeatures, layer_row, network_features
from .gaussian_process import kernel


@dataclass(frozen=True)
class Doubts:
    """Shares of the variance; they sum to 1. A part that balances others may have a negative one."""

    variance: float  # of the total, in seconds squared, before it is calibrated
    layers: dict[Layer, float]  # all runs of a distinct layer together
    whole: float  # how the network as a whole deviates from its layers
    step: float  # what a step costs besides
    measuring: float  # noise of the measurement that would show it


def doubts(model: Additive, network: Network, system: bool) -> Doubts:
    features = network_features(network, model.hyper.vector_width)
    known = [model.known(layer) for layer in features.layers]
    # as_a_whole gives the step's part together with the whole's.
    _, besides, own = model.as_a_whole(features, system)
    total = besides + sum((c * k.whitened for c, k in zip(features.counts, known, strict=True)), np.zeros_like(besides))
    prices = model.doubt**2 * features.row
    residuals, layers = _residuals(model, features), {}
    for layer, count, layer_known, residual in zip(features.layers, features.counts, known, residuals, strict=True):
        prior = float(layer_row(layer, model.hyper.vector_width) @ prices + residual)
        layers[layer] = float(count) * (prior - float(layer_known.whitened @ total))
    step = float(STEP @ prices) - float(model.step.whitened @ total)
    whole = own - float((besides - model.step.whitened) @ total)
    noise = float(model.measuring(model.answer(network, system).seconds))
    sum_ = sum(layers.values()) + step + whole + noise
    return Doubts(sum_, {k: v / sum_ for k, v in layers.items()}, whole / sum_, step / sum_, noise / sum_)


def _residuals(model: Additive, features: NetworkFeatures) -> Array:
    """Prior covariance of each layer's residual with those of all layers of its kind."""
    known = [model.known(layer) for layer in features.layers]
    kinds = np.array([group(layer) for layer in features.layers])
    physics, found = np.array([k.physics for k in known]), np.zeros(len(known))
    for kind in set(kinds):
        alike = np.flatnonzero(kinds == kind)
        positions = np.array([known[i].scaled_position for i in alike])
        near = kernel(positions, positions, model.hyper.own)
        found[alike] = model.hyper.residual_of(kind) ** 2 * physics[alike] * (near @ (features.counts * physics)[alike])
    return found
