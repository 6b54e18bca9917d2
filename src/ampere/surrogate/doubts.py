"""What an estimate's variance is made of: cov(part, total) of every part, which sum to the variance of the total."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ampere.network import Layer, Network
from ampere.network.kinds import group

from .additive import Additive
from .features import STEP, Array, layer_row, network_features
from .gp import kernel


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
    layers = {}
    for index, (layer, count) in enumerate(zip(features.layers, features.counts, strict=True)):
        prior = float(layer_row(layer, model.hyper.vector_width) @ prices) + _residual(
            model, features.layers, features.counts, index
        )
        layers[layer] = float(count) * (prior - float(known[index].whitened @ total))
    step = float(STEP @ prices) - float(model.step.whitened @ total)
    whole = own - float((besides - model.step.whitened) @ total)
    noise = float(model.measuring(model.answer(network, system).seconds))
    sum_ = sum(layers.values()) + step + whole + noise
    return Doubts(sum_, {k: v / sum_ for k, v in layers.items()}, whole / sum_, step / sum_, noise / sum_)


def _residual(model: Additive, layers: tuple[Layer, ...], counts: Array, index: int) -> float:
    """Prior covariance of one layer's residual with those of all layers of its kind."""
    kind = group(layers[index])
    alike = [i for i, layer in enumerate(layers) if group(layer) == kind]
    known = [model.known(layers[i]) for i in alike]
    here = model.known(layers[index])
    near = kernel(here.scaled_position[None, :], np.array([k.scaled_position for k in known]), model.hyper.own)[0]
    weights = np.array([counts[i] * k.physics for i, k in zip(alike, known, strict=True)])
    return model.hyper.residual_of(kind) ** 2 * here.physics * float(near @ weights)
