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

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from ampere.network import Layer, Network

from .features import PRIOR_PRICES, STEP, Array, NetworkFeatures, is_waste, layer_position, layer_row, network_features
from .gp import kernel
from .hyperparameters import Hyperparameters, fit_hyperparameters
from .physics import device_speed, fit_prices

PRICE_DOUBT = 0.25  # relative, for quantities that were measured
UNMEASURED_DOUBT = 1.0
ALLOCATOR_MEAN_DOUBT = 0.15
NETWORK_OCTAVES = 3.0
ALLOCATOR_OCTAVES = 2.0
OUTLIER = 3.0  # standard deviations beyond which a measurement's noise is taken to be larger than it says
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
class _Known:
    """What the model says of one layer: kept, because networks repeat layers."""

    row: Array
    physics: float
    mean: float
    whitened: Array  # covariance with the data, in the basis where the data is independent
    prior_variance: float
    scaled_position: Array


class Additive:
    """The fitted model. Make one with `learn`; it never changes afterwards."""

    def __init__(self, data: Data, hyper: Hyperparameters, prices: Array | None = None) -> None:
        self.data, self.hyper = data, hyper
        self._features = [network_features(network) for network in data.networks]
        self._rows = np.array([f.row for f in self._features]).reshape(len(data), len(STEP))
        self.prices = fit_prices(self._rows, data.costs) if prices is None else prices
        self._index_layers()
        self._doubt = self._price_doubt()
        self._noise = data.noise.copy()
        self._condition()
        self._known: dict[Layer, _Known] = {}

    # What was measured, as matrices.

    def _index_layers(self) -> None:
        self._slots: dict[str, dict[Layer, int]] = {}
        for features in self._features:
            for layer in features.layers:
                slots = self._slots.setdefault(layer.kind, {})
                slots.setdefault(layer, len(slots))
        self._weights = {kind: np.zeros((len(self.data), len(slots))) for kind, slots in self._slots.items()}
        for i, features in enumerate(self._features):
            for layer, count in zip(features.layers, features.counts, strict=True):
                physics = layer_row(layer) @ self.prices
                self._weights[layer.kind][i, self._slots[layer.kind][layer]] += count * physics
        self._positions = {k: np.array([layer_position(x) for x in slots]) for k, slots in self._slots.items()}
        self._physics = self._rows @ self.prices
        self._places = np.array([f.position for f in self._features]).reshape(len(self.data), 3)

    def _price_doubt(self) -> Array:
        measured = np.any(self._rows > 0, axis=0)
        speed = device_speed(self._rows, self.data.costs) if len(self.data) else 1.0
        known = PRICE_DOUBT * self.prices + 0.02 * speed * PRIOR_PRICES
        return np.where(measured, known, UNMEASURED_DOUBT * self.prices)

    def _scale(self, kind: str, positions: Array, hyper: Hyperparameters) -> Array:
        waste = np.array(is_waste(kind, positions.shape[-1]))
        scaled: Array = positions / np.where(waste, hyper.waste_octaves, hyper.octaves)
        return scaled

    def _network_covariance(
        self, a: Array, b: Array, system_a: Array, system_b: Array, hyper: Hyperparameters
    ) -> Array:
        """Relative covariance of what networks deviate as wholes."""
        shared = hyper.network**2 * kernel(a / NETWORK_OCTAVES, b / NETWORK_OCTAVES)
        allocator = ALLOCATOR_MEAN_DOUBT**2 + hyper.allocator**2 * kernel(a / ALLOCATOR_OCTAVES, b / ALLOCATOR_OCTAVES)
        both: Array = shared + np.outer(system_a, system_b) * allocator
        return both

    def _covariance(self, hyper: Hyperparameters) -> Array:
        """Of the measured costs, without noise."""
        total = self._network_covariance(self._places, self._places, self.data.system, self.data.system, hyper)
        total = total * np.outer(self._physics, self._physics)
        doubted = self._rows * self._doubt
        total += doubted @ doubted.T
        for kind, weights in self._weights.items():
            scaled = self._scale(kind, self._positions[kind], hyper)
            total += hyper.residual**2 * (weights @ kernel(scaled, scaled) @ weights.T)
        return total

    def _with_noise(self, covariance: Array, hyper: Hyperparameters) -> Array:
        variance = (self._noise + hyper.floor**2) * self.data.costs**2
        noisy: Array = covariance + np.diag(variance)
        return noisy

    def evidence(self, hyper: Hyperparameters) -> float:
        """log p(costs | hyperparameters)."""
        try:
            factor = cholesky(self._with_noise(self._covariance(hyper), hyper), lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            return -1e12
        white = solve_triangular(factor, self.data.costs - self._physics, lower=True, check_finite=False)
        return float(-0.5 * white @ white - np.sum(np.log(np.diag(factor))))

    def _condition(self) -> None:
        if len(self.data) == 0:
            self._factor, self._white = np.zeros((0, 0)), np.zeros(0)
            self._price_shift = np.zeros(len(STEP))
            self._alpha: dict[str, Array] = {}
            return
        noisy = self._with_noise(self._covariance(self.hyper), self.hyper)
        self._factor = cholesky(noisy, lower=True)
        residual = self.data.costs - self._physics
        self._white = solve_triangular(self._factor, residual, lower=True)
        solved = cho_solve((self._factor, True), residual)
        self._solved = solved
        self._price_shift = self._doubt**2 * (self._rows.T @ solved)
        self._alpha = {k: self.hyper.residual**2 * (w.T @ solved) for k, w in self._weights.items()}

    def leave_one_out(self) -> tuple[Array, Array]:
        """Each measurement's error and standard deviation had it not been there (noise included), in seconds."""
        inverse = cho_solve((self._factor, True), np.eye(len(self.data)))
        precision = np.diag(inverse)
        return (inverse @ (self.data.costs - self._physics)) / precision, 1.0 / np.sqrt(precision)

    # What the model says of layers and networks it may never have seen.

    def _know(self, layer: Layer) -> _Known:
        known = self._known.get(layer)
        if known is None:
            known = self._known[layer] = self._ask(layer)
        return known

    def _ask(self, layer: Layer) -> _Known:
        row = layer_row(layer)
        physics = float(row @ self.prices)
        position = self._scale(layer.kind, layer_position(layer), self.hyper)
        covariance = (self._rows * self._doubt**2) @ row
        relative = 0.0
        if layer.kind in self._positions:
            others = self._scale(layer.kind, self._positions[layer.kind], self.hyper)
            near = kernel(position[None, :], others)[0]
            relative = float(near @ self._alpha[layer.kind])
            covariance = covariance + self.hyper.residual**2 * physics * (self._weights[layer.kind] @ near)
        mean = max(physics * (1 + relative) + float(row @ self._price_shift), LEAST_SHARE * physics)
        whitened = (
            solve_triangular(self._factor, covariance, lower=True, check_finite=False) if len(self.data) else covariance
        )
        variance = float(np.sum((row * self._doubt) ** 2)) + (self.hyper.residual * physics) ** 2
        return _Known(row, physics, mean, whitened, variance, position)

    def answer(self, network: Network, system: bool = False) -> Answer:
        features = network_features(network)
        known = [self._know(layer) for layer in features.layers]
        step = self._step()
        physics = float(features.row @ self.prices)
        place, mode = features.position[None, :], np.array([float(system)])
        shift, whitened, variance = self._as_a_whole(place, mode, physics)
        parts = np.array([k.mean for k in known])
        total = float(features.counts @ parts) + step.mean
        factor = max(1.0 + shift / total, LEAST_SHARE)
        whitened = whitened + step.whitened + (features.counts @ np.array([k.whitened for k in known]) if known else 0)
        variance += self._joint_variance(features, known)
        stddev = self._stddev(variance - float(whitened @ whitened), total * factor)
        layer_stddevs = np.array(
            [self._stddev(k.prior_variance - float(k.whitened @ k.whitened), k.mean) for k in known]
        )
        return Answer(
            total * factor, stddev, features.layers, parts * factor, layer_stddevs * factor, step.mean * factor
        )

    def _step(self) -> _Known:
        covariance = (self._rows * self._doubt**2) @ STEP
        mean = max(float(STEP @ (self.prices + self._price_shift)), LEAST_SHARE * float(STEP @ self.prices))
        whitened = (
            solve_triangular(self._factor, covariance, lower=True, check_finite=False) if len(self.data) else covariance
        )
        return _Known(STEP, mean, mean, whitened, float(np.sum((STEP * self._doubt) ** 2)), STEP)

    def _as_a_whole(self, place: Array, mode: Array, physics: float) -> tuple[float, Array, float]:
        """How the network deviates from the sum of its layers: seconds, whitened covariance, prior variance."""
        own = float(self._network_covariance(place, place, mode, mode, self.hyper)[0, 0]) * physics**2
        if len(self.data) == 0:
            return 0.0, np.zeros(0), own
        relative = self._network_covariance(place, self._places, mode, self.data.system, self.hyper)[0]
        covariance = relative * self._physics * physics
        whitened = solve_triangular(self._factor, covariance, lower=True, check_finite=False)
        return float(covariance @ self._solved), whitened, own

    def _joint_variance(self, features: NetworkFeatures, known: list[_Known]) -> float:
        """Prior variance of the sum: layers of a kind that lie close deviate together."""
        variance = float(np.sum((features.row * self._doubt) ** 2))
        by_kind: dict[str, list[int]] = {}
        for index, layer in enumerate(features.layers):
            by_kind.setdefault(layer.kind, []).append(index)
        for members in by_kind.values():
            positions = np.array([known[i].scaled_position for i in members])
            weights = np.array([features.counts[i] * known[i].physics for i in members])
            variance += self.hyper.residual**2 * float(weights @ kernel(positions, positions) @ weights)
        return variance

    def _stddev(self, variance: float, mean: float) -> float:
        """Of what a measurement would show: doubt about the cost, and the floor of any measurement."""
        return self.hyper.calibration * float(np.sqrt(max(variance, 0.0) + (self.hyper.floor * mean) ** 2))


def learn(
    data: Data, start: Hyperparameters | None = None, evaluations: int = 60, calibrate_on: Array | None = None
) -> Additive:
    """Prices, hyperparameters, one look for outliers, and the calibration of the intervals."""
    hyper = replace(start or Hyperparameters(), calibration=1.0)
    model = Additive(data, hyper)
    if len(data) < 4:
        return model
    if evaluations:
        model = Additive(data, fit_hyperparameters(model.evidence, hyper, evaluations), model.prices)
    errors, deviations = model.leave_one_out()
    excess = np.abs(errors) / deviations / OUTLIER
    if np.any(excess > 1):
        inflated = np.where(excess > 1, data.noise + (excess * deviations / data.costs) ** 2, data.noise)
        model = Additive(replace(data, noise=inflated), model.hyper)
    return Additive(model.data, replace(model.hyper, calibration=_calibration(model, calibrate_on)), model.prices)


def _calibration(model: Additive, chosen: Array | None) -> float:
    """So that nine of ten leave-one-out errors lie within 1.645 standard deviations."""
    errors, deviations = model.leave_one_out()
    scores = np.abs(errors) / deviations
    scores = scores if chosen is None or np.sum(chosen) < 10 else scores[chosen]
    if len(scores) < 10:
        return 1.0
    return float(np.clip(np.quantile(scores, 0.9) / 1.645, 0.6, 2.0))
