"""The paper's method: layers by subtraction, one Gaussian process a layer kind over its channels, and their sum.

    variant measured            what it exposes
    output                      E_output(C)
    first + output              E_first(C)      = E - Ê_output                  equation (1)
    input + hidden + output     E_hidden(C, C') = E - Ê_input - Ê_output        equation (2)

    Ê_model = Ê_input + sum of Ê_hidden + Ê_output                              equation (4)

What a step costs besides its layers is inside the output layer, which is never trained without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ampere.network import Layer, Network
from ampere.network.kinds import USUAL_WIDTH

from .additive import Answer
from .channel_gp import ChannelGP
from .features import PRIOR_PRICES, Array, layer_row, network_features
from .physics import device_speed

Kind = tuple[Any, ...]

EXPOSED = {1: 0, 2: 0, 3: 1}  # in a variant of so many layers: which of them is not known yet
UNPROFILED_DOUBT = 1.0
BEYOND = 2.0  # a layer with channels so many times more or fewer than were measured is called extrapolated


@lru_cache(maxsize=65536)
def kind_of(layer: Layer) -> Kind:
    """The paper's: type, hyperparameters and what follows; all but the channels."""
    if layer.kind == "opaque":
        return ("opaque", *(layer.config.get(key) for key in ("class", "flops", "values")))
    config = dict(layer.config)
    if layer.kind == "scale":  # its size grows with its channels
        config["values"] = round(config["values"] / layer.channels_out, 6)
    tail: Kind = layer.tail if layer.kind == "glue" else tuple(op.op for op in layer.tail)
    return (layer.kind, tuple(sorted(config.items())), tail, layer.trainable, layer.input_grad)


def channels_of(layer: Layer) -> tuple[float, float]:
    return float(layer.channels_in), float(layer.channels_out)


class Sequential:
    """Fitted to variants of one, two and three layers; whatever else was measured is of no use to it."""

    def __init__(self, networks: Sequence[Network], costs: Array) -> None:
        self.processes: dict[Kind, ChannelGP] = {}
        self._exposed: dict[Kind, list[tuple[tuple[float, float], float]]] = {}
        variants = [(n, float(c)) for n, c in zip(networks, costs, strict=True) if len(n.layers) in EXPOSED]
        rows = np.array([network_features(n, USUAL_WIDTH).row for n, _ in variants])
        self._speed = device_speed(rows, np.array([c for _, c in variants])) if variants else 1.0
        for length in EXPOSED:
            kinds = {self._expose(n, c) for n, c in variants if len(n.layers) == length}
            for kind in kinds - {None}:
                self._fit(kind)

    def learn(self, network: Network, cost: float) -> Kind | None:
        """One more variant; the process of the layer that it exposes is fitted again."""
        kind = self._expose(network, cost) if len(network.layers) in EXPOSED else None
        self._fit(kind)
        return kind

    def knows(self, layer: Layer) -> bool:
        return kind_of(layer) in self.processes

    def within(self, layer: Layer) -> bool:
        """Whether layers with channels about as many were measured."""
        process, channels = self.processes[kind_of(layer)], np.array(channels_of(layer))
        return bool(np.all(channels >= process.low / BEYOND) and np.all(channels <= process.high * BEYOND))

    def answer(self, network: Network, system: bool = False) -> Answer:
        """Under the quiet allocator, which is the one that was measured."""
        distinct = network.distinct
        layers, counts = tuple(distinct), np.array(list(distinct.values()), dtype=float)
        means, deviations, variance = np.zeros(len(layers)), np.zeros(len(layers)), 0.0
        members: dict[Kind, list[int]] = {}
        for index, layer in enumerate(layers):
            members.setdefault(kind_of(layer), []).append(index)
        for kind, places in members.items():
            mean, covariance = self._ask(kind, [layers[i] for i in places])
            means[places], deviations[places] = mean, np.sqrt(np.maximum(np.diag(covariance), 0.0))
            variance += max(float(counts[places] @ covariance @ counts[places]), 0.0)
        return Answer(float(counts @ means), variance**0.5, layers, means, deviations, 0.0)

    def _ask(self, kind: Kind, layers: Sequence[Layer]) -> tuple[Array, Array]:
        if kind not in self.processes:
            guesses = self._speed * np.array([layer_row(layer, USUAL_WIDTH) @ PRIOR_PRICES for layer in layers])
            return guesses, UNPROFILED_DOUBT**2 * np.outer(guesses, guesses)
        mean, covariance = self.processes[kind].posterior(np.array([channels_of(layer) for layer in layers]))
        return np.maximum(mean, 0.0), covariance

    def _expose(self, network: Network, cost: float) -> Kind | None:
        """Subtracts what is known of a variant's other layers; None where one of them is not known."""
        place = EXPOSED[len(network.layers)]
        others = [layer for index, layer in enumerate(network.layers) if index != place]
        if not all(map(self.knows, others)):
            return None
        rest = sum(float(self._ask(kind_of(layer), [layer])[0][0]) for layer in others)
        kind = kind_of(network.layers[place])
        point = channels_of(network.layers[place]), max(cost - rest, 0.0)
        self._exposed.setdefault(kind, []).append(point)
        return kind

    def _fit(self, kind: Kind | None) -> None:
        if kind is not None:
            points = self._exposed[kind]
            self.processes[kind] = ChannelGP(np.array([p for p, _ in points]), np.array([c for _, c in points]))
