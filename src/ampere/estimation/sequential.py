"""The paper's method: layers by subtraction, one Gaussian process for each layer kind over its channels, and their sum.

    variant measured            what it exposes
    output                      E_output(C)
    first + output              E_first(C)      = E - Ê_output                  equation (1)
    input + hidden + output     E_hidden(C, C') = E - Ê_input - Ê_output        equation (2)

    Ê_model = Ê_input + sum of Ê_hidden + Ê_output                              equation (4)

The fixed cost of a step is part of the output layer, which is never trained without it.

A kind's process is a Matern 5/2 process with a constant mean, as the paper fits it:

    x   channels, each axis scaled to 0..1 between its bounds        y   cost in seconds
    y = mean + s f(x) + noise,   f ~ GP(0, Matern52(d / l)),   noise variance = r s^2

Length scale l and noise share r have the largest marginal likelihood on a grid; s follows from them. A grid, because
an optimiser could end in a poor local optimum, and two to forty points are cheap.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ampere.core import Layer, Network
from ampere.core.kinds import USUAL_WIDTH

from .additive import Answer
from .features import PRIOR_PRICES, Array, layer_row, network_features
from .gaussian_process import distances, matern52
from .prices import device_speed

Kind = tuple[Any, ...]

LENGTHS = np.geomspace(0.1, 10.0, 13)
NOISE_SHARES = np.array([1e-4, 1e-3, 1e-2, 3e-2, 0.1, 0.3])
MOST_POINTS = 200  # of a kind: the time and memory of a fit grow with their cube and square
SINGLE_POINT_STDDEV = 0.3  # relative, of a kind with one point, which does not show how the cost changes
LEAST_SCALE = 1e-3  # of the mean: a kind that costs the same everywhere was still measured with some noise
EXPOSED = {1: 0, 2: 0, 3: 1}  # number of layers of a variant: index of the layer that it exposes
UNPROFILED_STDDEV = 1.0  # relative, of a layer whose kind was never measured
BEYOND = 2.0  # a layer with this many times more or fewer channels than were measured is extrapolated


class ChannelGP:
    """One layer kind's cost over its channels."""

    def __init__(self, channels: Array, costs: Array) -> None:
        """`channels` has one row for each point."""
        self.channels = channels
        self.low, self.high = channels.min(axis=0), channels.max(axis=0)
        self.mean = float(costs.mean())
        self.typical = float(np.mean(np.abs(costs)))
        self._points, residual = self._scaled(channels), costs - self.mean
        self.length, self.noise_share = self._most_likely(residual)
        covariance = matern52(distances(self._points, self._points) / self.length)
        self._factor = cho_factor(covariance + self.noise_share * np.eye(len(costs)), lower=True)
        self._solved = cho_solve(self._factor, residual)
        variance = float(residual @ self._solved) / len(costs)
        least = SINGLE_POINT_STDDEV if len(costs) == 1 else LEAST_SCALE
        self._scale2 = max(variance, (least * self.typical) ** 2)

    def posterior(self, channels: Array) -> tuple[Array, Array]:
        """Means and covariance of the cost itself, without measurement noise."""
        points = self._scaled(channels)
        near = matern52(distances(points, self._points) / self.length)
        own = matern52(distances(points, points) / self.length)
        covariance = own - near @ cho_solve(self._factor, near.T)
        return self.mean + near @ self._solved, self._scale2 * covariance

    def deviations(self, channels: Array) -> Array:
        """Standard deviation of the cost at each point."""
        _, covariance = self.posterior(channels)
        return np.sqrt(np.maximum(np.diag(covariance), 0.0))

    def _scaled(self, channels: Array) -> Array:
        span = self.high - self.low
        return (channels - self.low) / np.where(span > 0, span, np.maximum(self.high, 1.0))

    def _most_likely(self, residual: Array) -> tuple[float, float]:
        """The length scale and noise share of the largest marginal likelihood.

        log p = -n/2 log(residual' K^-1 residual / n) - 1/2 log |K|, with the scale s at its best.
        """
        count = len(residual)
        apart = distances(self._points, self._points)
        grid = [(length, share) for length in LENGTHS for share in NOISE_SHARES]
        kernels = matern52(apart[None] / np.array([length for length, _ in grid])[:, None, None])
        kernels += np.array([share for _, share in grid])[:, None, None] * np.eye(count)
        factors = np.linalg.cholesky(kernels)
        white = np.linalg.solve(factors, np.broadcast_to(residual[:, None], (len(grid), count, 1)))[:, :, 0]
        variance = np.sum(white**2, axis=1) / count
        log_diagonals = np.sum(np.log(np.diagonal(factors, axis1=1, axis2=2)), axis=1)
        log_likelihoods = (
            -0.5 * count * np.log(np.maximum(variance, (LEAST_SCALE * self.typical) ** 2 + 1e-300)) - log_diagonals
        )
        return grid[int(np.argmax(log_likelihoods))]


@lru_cache(maxsize=65536)
def kind_of(layer: Layer) -> Kind:
    """A layer's kind as the paper defines it: type, hyperparameters and trailing operations; all but the channels."""
    if layer.kind == "opaque":
        return ("opaque", *(layer.config.get(key) for key in ("class", "flops", "values")))
    config = dict(layer.config)
    if layer.kind == "scale":  # its size grows with its channels
        config["values"] = round(config["values"] / layer.channels_out, 6)
    tail: Kind = layer.trailing if layer.kind == "nonparametric" else tuple(op.op for op in layer.trailing)
    return (layer.kind, tuple(sorted(config.items())), tail, layer.trainable, layer.input_grad)


def channels_of(layer: Layer) -> tuple[float, float]:
    """A layer's channels in and out."""
    return float(layer.channels_in), float(layer.channels_out)


class Sequential:
    """The paper's surrogate, fitted to variants of one, two and three layers; other measurements are ignored."""

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
        """Adds one variant, refits the process of the layer kind that it exposes, and returns that kind."""
        kind = self._expose(network, cost) if len(network.layers) in EXPOSED else None
        self._fit(kind)
        return kind

    def is_profiled(self, layer: Layer) -> bool:
        """Whether layers of this kind were measured."""
        return kind_of(layer) in self.processes

    def in_range(self, layer: Layer) -> bool:
        """Whether layers of this kind were measured with similar channels."""
        process, channels = self.processes[kind_of(layer)], np.array(channels_of(layer))
        return bool(np.all(channels >= process.low / BEYOND) and np.all(channels <= process.high * BEYOND))

    def answer(self, network: Network, system: bool = False) -> Answer:
        """The seconds of one step with the tuned allocator, the only one that is measured: `system` is ignored."""
        distinct = network.distinct
        layers, counts = tuple(distinct), np.array(list(distinct.values()), dtype=float)
        means, deviations, variance = np.zeros(len(layers)), np.zeros(len(layers)), 0.0
        members: dict[Kind, list[int]] = {}
        for index, layer in enumerate(layers):
            members.setdefault(kind_of(layer), []).append(index)
        for kind, places in members.items():
            mean, covariance = self._posterior(kind, [layers[i] for i in places])
            means[places], deviations[places] = mean, np.sqrt(np.maximum(np.diag(covariance), 0.0))
            variance += max(float(counts[places] @ covariance @ counts[places]), 0.0)
        return Answer(float(counts @ means), variance**0.5, layers, means, deviations, 0.0)

    def _posterior(self, kind: Kind, layers: Sequence[Layer]) -> tuple[Array, Array]:
        """Means and covariance of layers of a kind; by the prior prices where the kind was never measured."""
        if kind not in self.processes:
            guesses = self._speed * np.array([layer_row(layer, USUAL_WIDTH) @ PRIOR_PRICES for layer in layers])
            return guesses, UNPROFILED_STDDEV**2 * np.outer(guesses, guesses)
        mean, covariance = self.processes[kind].posterior(np.array([channels_of(layer) for layer in layers]))
        return np.maximum(mean, 0.0), covariance

    def _expose(self, network: Network, cost: float) -> Kind | None:
        """Subtracts a variant's other layers and keeps the rest; None where one of them was never measured."""
        place = EXPOSED[len(network.layers)]
        others = [layer for index, layer in enumerate(network.layers) if index != place]
        if not all(map(self.is_profiled, others)):
            return None
        rest = sum(float(self._posterior(kind_of(layer), [layer])[0][0]) for layer in others)
        kind = kind_of(network.layers[place])
        point = channels_of(network.layers[place]), max(cost - rest, 0.0)
        self._exposed.setdefault(kind, []).append(point)
        return kind

    def _fit(self, kind: Kind | None) -> None:
        if kind is not None:
            points = self._exposed[kind]
            points = points[:: -(-len(points) // MOST_POINTS)]
            self.processes[kind] = ChannelGP(np.array([p for p, _ in points]), np.array([c for _, c in points]))
