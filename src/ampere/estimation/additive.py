"""Ours: physics times a Gaussian process, conditioned on all sums of layers at once.

    l         a layer                    m_l   its physics cost, phi_l . beta
    g_l       its relative residual      g ~ GP(0, residual^2 Matern52), one process a layer kind
    net       a network, layers c_l times each
    h_net     what the whole deviates from its parts, relative; a GP over size and depth
    a_net     what the system's allocator adds, relative; 0 where the quiet one was used

    cost(net) = step + sum_l c_l m_l (1 + g_l)  +  m_net (h_net + a_net)  +  noise
    beta ~ N(fitted prices, (a quarter of them)^2), so that physics itself is not taken for certain

Everything is linear in Gaussian unknowns, so isolated layers, small variants and whole networks
teach one model through the same few matrix products.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from ampere.core import Layer, Network
from ampere.core.kinds import group

from .design_matrix import Stack, covariance, scale, whole_covariance
from .features import STEP, Array, NetworkFeatures, layer_position, layer_row, network_features
from .gaussian_process import kernel
from .hyperparameters import Hyperparameters
from .marginal_likelihood import Evidence
from .prices import device_speed, fit_prices, settled_prices

PRICE_DOUBT = 0.25  # relative, for quantities that were measured
UNMEASURED_DOUBT = 1.0
CAREFUL = 0.5  # noise variance of a measurement taken to check an estimate, against one taken in a hurry to profile
LEAST_SHARE = 0.1  # a layer never costs less than this share of its physics


@dataclass(frozen=True)
class Data:
    """Measured networks: cost in seconds, relative noise variance, and under which allocator."""

    networks: tuple[Network, ...]
    costs: Array
    noise: Array
    system: Array  # 1 where the system's allocator was used, else 0

    def __len__(self) -> int:
        return len(self.networks)

    @property
    def alone(self) -> bool:
        """Whether every layer was measured alone, so that none has to be told from others it was measured with."""
        return len(self) > 0 and all(len(network.layers) == 1 for network in self.networks)

    def only(self, chosen: Array) -> Data:
        """The measurements where `chosen` is true."""
        networks = tuple(n for n, kept in zip(self.networks, chosen, strict=True) if kept)
        return Data(networks, self.costs[chosen], self.noise[chosen], self.system[chosen])


@dataclass(frozen=True)
class Answer:
    """Seconds of one step: total, its standard deviation, and every distinct layer's share of it."""

    seconds: float
    stddev: float
    layers: tuple[Layer, ...]
    layer_seconds: Array  # each once, not times its count; with the step they sum to the total
    layer_stddevs: Array
    step_seconds: float


@dataclass(frozen=True)
class Known:
    """What the model says of one layer: kept, because networks repeat layers."""

    physics: float
    mean: float
    whitened: Array  # covariance with the data, in the basis where the data is independent
    stddev: float
    scaled_position: Array
    kind: str


class Additive:
    """The fitted model. Make one with `learning.learn`; it never changes afterwards."""

    def __init__(self, data: Data, hyper: Hyperparameters, prices: Array | None = None) -> None:
        self.data, self.hyper = data, hyper
        self._median = float(np.median(data.costs)) if len(data) else 0.0
        self.prices = self._fitted_prices() if prices is None else prices
        self.stack = Stack(data.networks, data.system, self.prices, hyper.vector_width)
        self.doubt = self._price_doubt()
        self._careful = CAREFUL * float(np.median(data.noise)) if len(data) else 0.0
        self._residual = data.costs - self.stack.physics
        self._condition()
        self._known: dict[Layer, Known] = {}
        self.step = self._ask_step()

    def _fitted_prices(self) -> Array:
        data, width = self.data, self.hyper.vector_width
        rows = np.array([network_features(n, width).row for n in data.networks]).reshape(len(data), len(STEP))
        prices = fit_prices(rows, data.costs, before=self.hyper.prices_before)
        if not data.alone:
            return prices
        rough = Stack(data.networks, data.system, prices, width)
        left_over = covariance(rough, rough, np.zeros(len(STEP)), self.hyper) + np.diag(self._noise())
        return settled_prices(rows, data.costs, left_over)

    def _price_doubt(self) -> Array:
        measured = np.any(self.stack.rows > 0, axis=0)
        speed = device_speed(self.stack.rows, self.data.costs) if len(self.data) else 1.0
        known = PRICE_DOUBT * self.prices + 0.02 * speed * self.hyper.prices_before
        return np.where(measured, known, UNMEASURED_DOUBT * self.prices)

    def _noisy(self) -> Array:
        """Covariance of what was measured."""
        return covariance(self.stack, self.stack, self.doubt, self.hyper) + np.diag(self._noise())

    def _noise(self) -> Array:
        return np.asarray((self.data.noise + self.unrepeatable(self.data.costs)) * self.data.costs**2)

    def unrepeatable(self, costs: Any) -> Any:
        """Relative variance that no number of repeats removes: more of it where a measurement is short."""
        return self.hyper.floor**2 + self.hyper.grain**2 * self._median / np.maximum(costs, 1e-300)

    @cached_property
    def evidence(self) -> Evidence:
        return Evidence(self.stack, self.data.costs, self.data.noise, self.doubt)

    def _condition(self) -> None:
        self._factor = cholesky(self._noisy(), lower=True) if len(self.data) else np.zeros((0, 0))
        self.solved = cho_solve((self._factor, True), self._residual) if len(self.data) else np.zeros(0)
        self.price_shift = self.doubt**2 * (self.stack.rows.T @ self.solved)
        self.alpha = {k: self.hyper.residual_of(k) ** 2 * (w.T @ self.solved) for k, w in self.stack.weights.items()}

    def whiten(self, with_data: Array) -> Array:
        if len(self.data) == 0:
            return with_data
        return solve_triangular(self._factor, with_data, lower=True, check_finite=False)

    def leave_one_out(self) -> tuple[Array, Array]:
        """Each measurement's error and standard deviation had it not been there (noise included), in seconds."""
        inverse = cho_solve((self._factor, True), np.eye(len(self.data)))
        precision = np.diag(inverse)
        return (inverse @ self._residual) / precision, 1.0 / np.sqrt(precision)

    def joint(self, networks: Sequence[Network], system: Array) -> tuple[Array, Array]:
        """Means and posterior covariance of several networks at once: what the planner thinks with."""
        stack = Stack(networks, system, self.prices, self.hyper.vector_width)
        with_data = covariance(self.stack, stack, self.doubt, self.hyper)
        whitened = self.whiten(with_data)
        posterior = covariance(stack, stack, self.doubt, self.hyper) - whitened.T @ whitened
        return np.maximum(stack.physics + with_data.T @ self.solved, LEAST_SHARE * stack.physics), posterior

    def known(self, layer: Layer) -> Known:
        known = self._known.get(layer)
        if known is None:
            known = self._known[layer] = self._ask(layer)
        return known

    def _ask(self, layer: Layer) -> Known:
        row, kind, hyper = layer_row(layer, self.hyper.vector_width), group(layer), self.hyper
        physics = float(row @ self.prices)
        position = scale(kind, layer_position(layer, hyper.vector_width), hyper)
        with_data = (self.stack.rows * self.doubt**2) @ row
        relative = 0.0
        if kind in self.stack.positions:
            near = kernel(position[None, :], scale(kind, self.stack.positions[kind], hyper), hyper.own)[0]
            relative = float(near @ self.alpha[kind])
            with_data = with_data + hyper.residual_of(kind) ** 2 * physics * (self.stack.weights[kind] @ near)
        mean = max(physics * (1 + relative) + float(row @ self.price_shift), LEAST_SHARE * physics)
        variance = float(np.sum((row * self.doubt) ** 2)) + (hyper.residual_of(kind) * physics) ** 2
        whitened = self.whiten(with_data)
        stddev = self._stddev(variance - float(whitened @ whitened), mean)
        return Known(physics, mean, whitened, stddev, position, kind)

    def _ask_step(self) -> Known:
        physics = float(STEP @ self.prices)
        mean = max(float(STEP @ (self.prices + self.price_shift)), LEAST_SHARE * physics)
        whitened = self.whiten((self.stack.rows * self.doubt**2) @ STEP)
        return Known(physics, mean, whitened, 0.0, STEP, "step")

    def answer(self, network: Network, system: bool = False) -> Answer:
        features = network_features(network, self.hyper.vector_width)
        known = [self.known(layer) for layer in features.layers]
        parts = np.array([k.mean for k in known])
        total = float(features.counts @ parts) + self.step.mean
        shift, whitened, variance = self.as_a_whole(features, system)
        if known:
            whitened = whitened + features.counts @ np.array([k.whitened for k in known])
        variance += self._joint_variance(features, known) - float(whitened @ whitened)
        factor = max(1.0 + shift / total, LEAST_SHARE)
        return Answer(
            total * factor,
            self._stddev(variance, total * factor),
            features.layers,
            parts * factor,
            np.array([k.stddev for k in known]) * factor,
            self.step.mean * factor,
        )

    def as_a_whole(self, features: NetworkFeatures, system: bool) -> tuple[float, Array, float]:
        """How a network deviates from its layers' sum: seconds, whitened covariance with the step, prior variance."""
        place, mode = features.position[None, :], np.array([float(system)])
        physics = float(features.row @ self.prices)
        own = float(whole_covariance(place, place, mode, mode, self.hyper)[0, 0]) * physics**2
        relative = whole_covariance(place, self.stack.places, mode, self.data.system, self.hyper)[0]
        with_data = relative * self.stack.physics * physics
        return float(with_data @ self.solved), self.whiten(with_data) + self.step.whitened, own

    def _joint_variance(self, features: NetworkFeatures, known: list[Known]) -> float:
        """Prior variance of the sum: layers of a kind that lie close deviate together."""
        variance = float(np.sum((features.row * self.doubt) ** 2))
        by_kind: dict[str, list[int]] = {}
        for index, layer in enumerate(known):
            by_kind.setdefault(layer.kind, []).append(index)
        for kind, members in by_kind.items():
            positions = np.array([known[i].scaled_position for i in members])
            weights = np.array([features.counts[i] * known[i].physics for i in members])
            near = kernel(positions, positions, self.hyper.own)
            variance += self.hyper.residual_of(kind) ** 2 * float(weights @ near @ weights)
        return variance

    def measuring(self, costs: Any) -> Any:
        """Variance of a careful measurement of what costs so much."""
        return (self._careful + self.unrepeatable(costs)) * costs**2

    def _stddev(self, variance: float, mean: float) -> float:
        """Of what a measurement would show: doubt about the cost, and the noise of a typical measurement."""
        return self.hyper.calibration * float(np.sqrt(max(variance, 0.0) + self.measuring(mean)))
