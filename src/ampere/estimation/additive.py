"""Ampere's own surrogate: physics times a Gaussian process, conditioned on all measured sums of layers at once.

    l         a layer                    m_l   its physics cost, phi_l . beta
    g_l       its relative residual      g ~ GP(0, residual^2 Matern52), one process a layer kind
    net       a network, layers c_l times each
    h_net     relative deviation of the whole from its parts; a GP over size and depth
    a_net     relative cost of the system's allocator at usual page faults; 0 where the tuned one was used

    cost(net) = step + sum_l c_l m_l (1 + g_l)  +  m_net (h_net + a_net)  +  noise
    beta ~ N(fitted prices, (a quarter of them)^2), because the prices of physics are uncertain too

Everything is linear in Gaussian unknowns, so isolated layers, small variants and whole networks
train one model through the same few matrix products.

Where every measurement is of one layer alone, nothing has to be split, and the same unknowns are exponents:

    cost(net) = m_net exp(the sum above / m_net - 1)

so that costs may span decades and deviate from physics many times over (docs/decisions/0023). A layer then adds to
other networks what its lone step costs more than an empty one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ampere.core import Layer, Network
from ampere.core.kinds import group

from .design_matrix import (
    LOOP_STDDEV,
    DesignMatrix,
    Wholes,
    covariance,
    group_shares,
    own_covariance,
    scale,
    whole_covariance,
)
from .features import STEP, Array, NetworkFeatures, layer_position, layer_row, network_features
from .gaussian_process import BLOCK, kernel, near_sums
from .hyperparameters import Hyperparameters
from .marginal_likelihood import MarginalLikelihood
from .prices import at_prior_level, device_speed, fit_prices, isolated_prices, likeliest_prices

PRICE_STDDEV = 0.25  # relative, of a quantity that was measured
UNMEASURED_STDDEV = 1.0  # relative, of a quantity that was never measured
CHECK_NOISE = 0.5  # noise variance of a measurement that checks an estimate, relative to one made for a profile
LEAST_SHARE = 0.1  # a layer never costs less than this share of its physics
LARGEST_EXPONENT = 7.0  # a cost is at most a thousand times its physics, or a thousandth of it
MOST_KEPT = 4_000_000  # numbers in the posteriors of layers that are kept: 32 MB
OF_A_LAYER = 300  # numbers that a layer and its record take by themselves


@dataclass(frozen=True)
class Data:
    """Measured networks with their cost in seconds, relative noise variance and allocator."""

    networks: tuple[Network, ...]
    costs: Array
    noise: Array
    system: Array  # 1 where the system's allocator was used, else 0

    def __len__(self) -> int:
        return len(self.networks)

    @property
    def isolated(self) -> bool:
        """Whether every layer was measured alone, so that no measurement has to be split between layers."""
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
class Posterior:
    """The model's posterior of one layer's cost. It is cached, because networks repeat layers."""

    physics: float
    mean: float
    whitened: Array  # covariance with the data, in the basis where the data is independent
    stddev: float
    scaled_position: Array
    kind: str


class Additive:
    """The fitted model. `learning.learn` returns one; it never changes afterwards."""

    def __init__(
        self,
        data: Data,
        hyper: Hyperparameters,
        prices: Array | None = None,
        before: Array | None = None,
        kept: Mapping[str, Array] | None = None,
    ) -> None:
        """With these prices, or with fitted ones; `before` are another device's, in place of the prior ones.

        `kept` are the `arrays` of the same fit: then nothing is fitted.
        """
        self.data, self.hyper = data, hyper
        self.logarithmic = data.isolated
        self._median = float(np.median(data.costs)) if len(data) else 0.0
        if kept is not None:
            self.prices, self.solved, self._whitening = kept["prices"], kept["solved"], kept["whitening"]
            self.design = DesignMatrix.from_arrays(kept, data.system, self.prices)
        else:
            self.prices = self._fitted_prices(before) if prices is None else prices
            self.design = DesignMatrix(data.networks, data.system, self.prices, hyper.vector_width)
        self.price_stddev = self._price_stddev()
        self._check_noise = CHECK_NOISE * float(np.median(data.noise)) if len(data) else 0.0
        # What noise is relative to. Relative to a reading, what was read too low would seem the most certain.
        self._sizes = self.design.physics if self.logarithmic else data.costs
        self._residual = self._residuals()
        if kept is None:
            self.solved = self._solve()
        self.price_shift = self.price_stddev**2 * (self.design.rows.T @ self.solved)
        self._posteriors: dict[Layer, Posterior] = {}

    def arrays(self) -> dict[str, Array]:
        """The fit, to be kept in a file: what does not follow from the data and the hyperparameters in no time."""
        return {
            "prices": self.prices,
            "solved": self.solved,
            "whitening": self._whitening,
            **self.design.arrays(),
        }

    def _fitted_prices(self, before: Array | None) -> Array:
        data, width = self.data, self.hyper.vector_width
        rows = np.array([network_features(n, width).row for n in data.networks]).reshape(len(data), len(STEP))
        if before is None and len(data) and not data.isolated:
            return likeliest_prices(rows, data.costs, self.hyper.prior_prices)
        before = self.hyper.prior_prices if before is None or not len(data) else at_prior_level(before, rows)
        prices = fit_prices(rows, data.costs, before=before)
        if not data.isolated:
            return prices
        rough = DesignMatrix(data.networks, data.system, prices, width)
        residuals = covariance(rough, rough, np.zeros(len(STEP)), self.hyper)
        relative = residuals / np.outer(rough.physics, rough.physics)
        noise = data.noise + self.irreducible_variance(rough.physics)
        return isolated_prices(rows, data.costs, relative + np.diag(noise), before)

    def _residuals(self) -> Array:
        physics, costs = self.design.physics, self.data.costs
        return np.asarray(physics * np.log(costs / physics)) if self.logarithmic else costs - physics

    def _price_stddev(self) -> Array:
        measured = np.any(self.design.rows > 0, axis=0)
        speed = device_speed(self.design.rows, self.data.costs) if len(self.data) else 1.0
        stddev = PRICE_STDDEV * self.prices + 0.02 * speed * self.hyper.prior_prices
        return np.where(measured, stddev, UNMEASURED_STDDEV * self.prices)

    def _noisy(self) -> Array:
        """Prior covariance of the measured costs, noise included."""
        return covariance(self.design, self.design, self.price_stddev, self.hyper) + np.diag(self._noise())

    def _noise(self) -> Array:
        return np.asarray((self.data.noise + self.irreducible_variance(self._sizes)) * self._sizes**2)

    def irreducible_variance(self, costs: Any) -> Any:
        """Relative variance that no number of repeats removes; it is larger for short measurements."""
        return self.hyper.floor**2 + self.hyper.grain**2 * self._median / np.maximum(costs, 1e-300)

    @cached_property
    def marginal_likelihood(self) -> MarginalLikelihood:
        """The probability of the measured costs as a function of the hyperparameters."""
        noise = self.data.noise * self._sizes**2
        return MarginalLikelihood(
            self.design, self._residual, noise, self._sizes**2, self._median * self._sizes, self.price_stddev
        )

    @cached_property
    def _factor(self) -> Array:
        from scipy.linalg import cholesky

        return np.asarray(cholesky(self._noisy(), lower=True)) if len(self.data) else np.zeros((0, 0))

    def _solve(self) -> Array:
        from scipy.linalg import cho_solve

        return np.asarray(cho_solve((self._factor, True), self._residual)) if len(self.data) else np.zeros(0)

    @cached_property
    def _whitening(self) -> Array:
        """The inverse of the factor: a product with it is all that an estimate needs."""
        from scipy.linalg.lapack import dtrtri

        return np.asarray(dtrtri(self._factor, lower=1)[0]) if len(self.data) else np.zeros((0, 0))

    @cached_property
    def alpha(self) -> dict[str, Array]:
        """For each kind, how much each measured position pulls at the relative residuals of others."""
        return {k: self.hyper.residual_of(k) ** 2 * self.design.pulls(k, self.solved) for k in self.design.positions}

    @cached_property
    def loop_shift(self) -> Array:
        """What a user's loop adds to overheads, to arithmetic and to memory, relative to each."""
        pull = self.data.system * self.design.physics * self.solved
        return np.asarray(LOOP_STDDEV**2 * (pull @ self.design.wholes.shares))

    def whiten(self, with_data: Array) -> Array:
        """Covariances with the data, in the basis where the data is independent."""
        return self._whitening @ with_data if len(self.data) else with_data

    def leave_one_out(self) -> tuple[Array, Array]:
        """Each measurement's error and standard deviation (noise included) without that measurement, in seconds."""
        from scipy.linalg import cho_solve

        inverse = cho_solve((self._factor, True), np.eye(len(self.data)))
        precision = np.diag(inverse)
        scale = self.data.costs / self._sizes
        return scale * (inverse @ self._residual) / precision, scale / np.sqrt(precision)

    def joint(self, networks: Sequence[Network], system: Array) -> tuple[Array, Array]:
        """Means and posterior covariance of several networks at once, for the planner."""
        design = DesignMatrix(networks, system, self.prices, self.hyper.vector_width)
        with_data = covariance(self.design, design, self.price_stddev, self.hyper)
        whitened = self.whiten(with_data)
        posterior = covariance(design, design, self.price_stddev, self.hyper) - whitened.T @ whitened
        if not self.logarithmic:
            return np.maximum(design.physics + with_data.T @ self.solved, LEAST_SHARE * design.physics), posterior
        self.posteriors_of([layer for network in networks for layer in network.distinct])
        means = np.array([self.answer(n, bool(s)).seconds for n, s in zip(networks, system, strict=True)])
        return means, posterior * np.outer(means / design.physics, means / design.physics)

    def posteriors_of(self, layers: Sequence[Layer]) -> list[Posterior]:
        """The posterior of each layer's cost; layers that were not asked for before are computed together."""
        if len(self._posteriors) * (len(self.data) + OF_A_LAYER) > MOST_KEPT:
            self._posteriors = {}
        known = self._posteriors  # another thread may begin anew meanwhile
        by_kind: dict[str, list[Layer]] = {}
        for layer in dict.fromkeys(layers):
            if layer not in known:
                by_kind.setdefault(group(layer), []).append(layer)
        for kind, members in by_kind.items():
            for first in range(0, len(members), BLOCK):
                some = members[first : first + BLOCK]
                known.update(zip(some, self._layer_posteriors(kind, some), strict=True))
        return [known[layer] for layer in layers]

    def _layer_posteriors(self, kind: str, layers: Sequence[Layer]) -> list[Posterior]:
        hyper, residual = self.hyper, self.hyper.residual_of(kind)
        rows = np.array([layer_row(layer, hyper.vector_width) for layer in layers])
        positions = scale(kind, np.array([layer_position(layer, hyper.vector_width) for layer in layers]), hyper)
        physics = rows @ self.prices
        with_data = (self.design.rows * self.price_stddev**2) @ rows.T
        relative = np.zeros(len(layers))
        if kind in self.design.positions:
            near = kernel(positions, scale(kind, self.design.positions[kind], hyper), hyper.own)
            relative = near @ self.alpha[kind]
            with_data = with_data + residual**2 * physics * (self.design.dense_weights(kind) @ near.T)
        means = self.layer_means(rows, physics, relative)
        variances = np.sum((rows * self.price_stddev) ** 2, axis=1) + (residual * physics) ** 2
        whitened = self.whiten(with_data)
        stddevs = self.stddev(variances - np.sum(whitened**2, axis=0), means, physics)
        return [
            Posterior(float(physics[i]), float(means[i]), whitened[:, i], float(stddevs[i]), positions[i], kind)
            for i in range(len(layers))
        ]

    def layer_means(self, rows: Array, physics: Array, relative: Array) -> Array:
        """The cost of layers with these physics columns and relative residuals."""
        means = physics * (1 + relative) + rows @ self.price_shift
        if self.logarithmic:
            step = self.step
            means = self._exponential(physics + step.physics, means - physics + STEP @ self.price_shift) - step.mean
        return np.asarray(np.maximum(means, LEAST_SHARE * physics))

    def whole_means(self, parts: Any, physics: Any, relative: Any) -> Any:
        """The cost of networks: the sum of their parts, and their relative deviation from it."""
        if self.logarithmic:
            return self._exponential(parts, parts * relative)
        return np.maximum(parts + physics * relative, LEAST_SHARE * parts)

    def _exponential(self, physics: Any, deviation: Any) -> Any:
        return physics * np.exp(np.clip(deviation / physics, -LARGEST_EXPONENT, LARGEST_EXPONENT))

    def scale(self, means: Any, physics: Any) -> Any:
        """Seconds of a cost for each second of its physics that the unknowns move it by."""
        return means / physics if self.logarithmic else 1.0

    @cached_property
    def step(self) -> Posterior:
        """The posterior of what a step costs outside its layers."""
        physics = float(STEP @ self.prices)
        shift = float(STEP @ self.price_shift)
        mean = (
            float(self._exponential(physics, shift))
            if self.logarithmic
            else max(physics + shift, LEAST_SHARE * physics)
        )
        whitened = self.whiten((self.design.rows * self.price_stddev**2) @ STEP)
        return Posterior(physics, mean, whitened, 0.0, STEP, "step")

    def answer(self, network: Network, system: bool = False) -> Answer:
        """The seconds of one step of a network, with the system's allocator or the tuned one."""
        features = network_features(network, self.hyper.vector_width)
        posteriors = self.posteriors_of(features.layers)
        parts = np.array([p.mean for p in posteriors])
        total = float(features.counts @ parts) + self.step.mean
        shift, whitened, variance = self.whole_deviation(features, system)
        if posteriors:
            whitened = whitened + features.counts @ np.array([p.whitened for p in posteriors])
        variance += self._joint_variance(features, posteriors) - float(whitened @ whitened)
        physics = float(features.row @ self.prices)
        seconds = float(self.whole_means(total, physics, shift / physics))
        factor = seconds / total
        return Answer(
            seconds,
            float(self.stddev(variance, seconds, physics)),
            features.layers,
            parts * factor,
            np.array([p.stddev for p in posteriors]) * factor,
            self.step.mean * factor,
        )

    def whole_deviation(self, features: NetworkFeatures, system: bool) -> tuple[float, Array, float]:
        """A network's deviation from its layers: seconds, whitened covariance (with the step's), prior variance."""
        shares = group_shares(features.row[None, :], self.prices)
        whole = Wholes(features.position[None, :], shares, np.array([float(system)]))
        physics = float(features.row @ self.prices)
        own = float(own_covariance(whole, self.hyper)[0]) * physics**2
        relative = whole_covariance(whole, self.design.wholes, self.hyper)[0]
        with_data = relative * self.design.physics * physics
        return float(with_data @ self.solved), self.whiten(with_data) + self.step.whitened, own

    def _joint_variance(self, features: NetworkFeatures, posteriors: list[Posterior]) -> float:
        """Prior variance of the layers' sum. Similar layers of a kind deviate together."""
        variance = float(np.sum((features.row * self.price_stddev) ** 2))
        by_kind: dict[str, list[int]] = {}
        for index, layer in enumerate(posteriors):
            by_kind.setdefault(layer.kind, []).append(index)
        for kind, members in by_kind.items():
            positions = np.array([posteriors[i].scaled_position for i in members])
            weights = np.array([features.counts[i] * posteriors[i].physics for i in members])
            near = near_sums(positions, weights, self.hyper.own)
            variance += self.hyper.residual_of(kind) ** 2 * float(weights @ near)
        return variance

    def measurement_variance(self, costs: Any) -> Any:
        """Noise variance of a measurement that checks an estimate, in seconds squared."""
        return (self._check_noise + self.irreducible_variance(costs)) * costs**2

    def stddev(self, variance: Any, mean: Any, physics: Any) -> Any:
        """Standard deviation of a future measurement: uncertainty of the cost, and the noise of measuring it."""
        known = np.maximum(variance, 0.0) * self.scale(mean, physics) ** 2
        return self.hyper.calibration * np.sqrt(known + self.measurement_variance(mean))
