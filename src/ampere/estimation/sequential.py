"""The paper's method: units by subtraction, one Gaussian process for each kind over its channels, and their sum.

    variant measured            what it exposes
    output                      E_output(C)
    input + output              E_input(C)      = E - Ê_output                  equation (1)
    input + hidden + output     E_hidden(C, C') = E - Ê_input - Ê_output        equation (2)

    Ê_model = Ê_input + sum of Ê_hidden + Ê_output                              equation (4)

A unit is a layer with what follows it, or a block of them (`units`). The fixed cost of a step is part of the output
unit, which is never trained without it. The layers of a unit share its cost as the prior prices say.

A kind's process has a constant mean and a kernel, which in the paper is Matern 5/2, equation (3):

    x   channels, each axis scaled to 0..1 between its bounds        y   cost in seconds
    y = mean + s f(x) + noise,   f ~ GP(0, kernel(d / l)),   noise variance = r s^2

Length scale l and noise share r have the largest marginal likelihood on a grid; s follows from them. A grid, because
an optimiser could end in a poor local optimum, and two to forty points are cheap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from ampere.core import Layer, Network
from ampere.core.errors import UsageError
from ampere.core.kinds import USUAL_WIDTH

from .additive import Answer
from .features import PRIOR_PRICES, Array, layer_row, network_features
from .gaussian_process import distances
from .prices import device_speed
from .units import Kind, Ties, Unit, common_ties, units_of, variant_units

LENGTHS = np.geomspace(0.1, 10.0, 13)
NOISE_SHARES = np.array([1e-4, 1e-3, 1e-2, 3e-2, 0.1, 0.3])
MOST_POINTS = 200  # of a kind: the time and memory of a fit grow with their cube and square
SINGLE_POINT_STDDEV = 0.3  # relative, of a kind with one point, which does not show how the cost changes
LEAST_SCALE = 1e-3  # of the mean: a kind that costs the same everywhere was still measured with some noise
UNPROFILED_STDDEV = 1.0  # relative, of a unit whose kind was never measured
BEYOND = 2.0  # a unit with this many times more or fewer channels than were measured is extrapolated

# Covariance as a function of distance over length scale. The paper's is matern25.
KERNELS: dict[str, Callable[[Array], Array]] = {
    "matern25": lambda d: (1 + 5**0.5 * d + 5 / 3 * d**2) * np.exp(-(5**0.5) * d),
    "matern15": lambda d: (1 + 3**0.5 * d) * np.exp(-(3**0.5) * d),
    "rbf": lambda d: np.exp(-(d**2) / 2),
    "rational_quadratic": lambda d: 1 / (1 + d**2 / 2),
}
PAPERS_KERNEL = "matern25"


def find_kernel(name: str) -> Callable[[Array], Array]:
    """The kernel of this name."""
    if name not in KERNELS:
        raise UsageError(f"there is no kernel {name!r:.40}: choose one of {', '.join(KERNELS)}")
    return KERNELS[name]


class ChannelGP:
    """One kind's cost over its channels."""

    def __init__(self, channels: Array, costs: Array, kernel: str = PAPERS_KERNEL) -> None:
        """`channels` has one row for each point."""
        from scipy.linalg import cho_factor, cho_solve

        self.channels, self._kernel = channels, find_kernel(kernel)
        self.low, self.high = channels.min(axis=0), channels.max(axis=0)
        self.mean = float(costs.mean())
        self.typical = float(np.mean(np.abs(costs)))
        self._points, residual = self._scaled(channels), costs - self.mean
        self.length, self.noise_share = self._most_likely(residual)
        covariance = self._kernel(distances(self._points, self._points) / self.length)
        self._factor = cho_factor(covariance + self.noise_share * np.eye(len(costs)), lower=True)
        self._solved = cho_solve(self._factor, residual)
        variance = float(residual @ self._solved) / len(costs)
        least = SINGLE_POINT_STDDEV if len(costs) == 1 else LEAST_SCALE
        self._scale2 = max(variance, (least * self.typical) ** 2)

    def posterior(self, channels: Array) -> tuple[Array, Array]:
        """Means and covariance of the cost itself, without measurement noise."""
        from scipy.linalg import cho_solve

        points = self._scaled(channels)
        near = self._kernel(distances(points, self._points) / self.length)
        own = self._kernel(distances(points, points) / self.length)
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
        kernels = self._kernel(apart[None] / np.array([length for length, _ in grid])[:, None, None])
        kernels += np.array([share for _, share in grid])[:, None, None] * np.eye(count)
        factors = np.linalg.cholesky(kernels)
        white = np.linalg.solve(factors, np.broadcast_to(residual[:, None], (len(grid), count, 1)))[:, :, 0]
        variance = np.sum(white**2, axis=1) / count
        log_diagonals = np.sum(np.log(np.diagonal(factors, axis1=1, axis2=2)), axis=1)
        log_likelihoods = (
            -0.5 * count * np.log(np.maximum(variance, (LEAST_SCALE * self.typical) ** 2 + 1e-300)) - log_diagonals
        )
        return grid[int(np.argmax(log_likelihoods))]


class Sequential:
    """The paper's surrogate, fitted to variants of one, two and three units; other measurements are ignored."""

    def __init__(self, networks: Sequence[Network], costs: Array, kernel: str = PAPERS_KERNEL) -> None:
        self.processes: dict[Kind, ChannelGP] = {}
        self._kernel = kernel
        self._exposed: dict[Kind, list[tuple[Unit, float]]] = {}
        self._ties: dict[Kind, Ties] = {}
        parsed = [(n, variant_units(n), float(c)) for n, c in zip(networks, costs, strict=True)]
        variants = [(n, units, c) for n, units, c in parsed if units]
        rows = np.array([network_features(n, USUAL_WIDTH).row for n, _, _ in variants])
        self._speed = device_speed(rows, np.array([c for _, _, c in variants])) if variants else 1.0
        for length in (1, 2, 3):
            kinds = {self._expose(units, c) for _, units, c in variants if len(units) == length}
            for kind in kinds - {None}:
                self._fit(kind)

    def learn(self, network: Network, cost: float) -> Kind | None:
        """Adds one variant, refits the process of the kind that it exposes, and returns that kind."""
        units = variant_units(network)
        kind = self._expose(units, cost) if units else None
        self._fit(kind)
        return kind

    def units(self, network: Network) -> list[Unit]:
        """The network's units; blocks that were not measured are cut into their groups."""
        return units_of(network, self._is_whole)

    def is_profiled(self, unit: Unit) -> bool:
        """Whether units of this kind were measured."""
        return unit.kind in self.processes

    def in_range(self, unit: Unit) -> bool:
        """Whether units of this kind were measured with similar channels."""
        process, channels = self.processes[unit.kind], np.array(unit.channels)
        return bool(np.all(channels >= process.low / BEYOND) and np.all(channels <= process.high * BEYOND))

    def unprofiled(self, network: Network) -> list[Layer]:
        """The layers whose kind was never measured."""
        return [layer for unit in self.units(network) if not self.is_profiled(unit) for layer in unit.layers]

    def extrapolated(self, network: Network) -> list[Layer]:
        """The layers with far more or fewer channels than were measured."""
        profiled = [unit for unit in self.units(network) if self.is_profiled(unit)]
        return [layer for unit in profiled if not self.in_range(unit) for layer in unit.layers]

    def answer(self, network: Network, system: bool = False) -> Answer:
        """The seconds of one step with the tuned allocator, the only one that is measured: `system` is ignored."""
        place = {layer: index for index, layer in enumerate(network.distinct)}
        seconds, deviations, variance = np.zeros(len(place)), np.zeros(len(place)), 0.0
        members: dict[Kind, Counter[Unit]] = {}
        for unit in self.units(network):
            members.setdefault(unit.kind, Counter())[unit] += 1
        for kind, counted in members.items():
            units, counts = list(counted), np.array(list(counted.values()), dtype=float)
            means, covariance = self._posterior(kind, units)
            variance += max(float(counts @ covariance @ counts), 0.0)
            stddevs = np.sqrt(np.maximum(np.diag(covariance), 0.0))
            for unit, count, mean, stddev in zip(units, counts, means, stddevs, strict=True):
                for layer, share in zip(unit.layers, _shares(unit), strict=True):
                    seconds[place[layer]] += count * share * mean
                    deviations[place[layer]] += count * share * stddev
        counts = np.array(list(network.distinct.values()), dtype=float)
        return Answer(float(seconds.sum()), variance**0.5, tuple(place), seconds / counts, deviations / counts, 0.0)

    def covariance(self, networks: Sequence[Network]) -> Array:
        """Covariance of the seconds of a step between networks: they share units, and kinds of units."""
        found = np.zeros((len(networks), len(networks)))
        members: dict[Kind, dict[Unit, Array]] = {}  # how often each network has a unit
        for place, network in enumerate(networks):
            for unit in self.units(network):
                counts = members.setdefault(unit.kind, {}).setdefault(unit, np.zeros(len(networks)))
                counts[place] += 1
        for kind, counted in members.items():
            counts = np.array(list(counted.values()))
            found += counts.T @ self._posterior(kind, list(counted))[1] @ counts
        return found

    def _is_whole(self, block: Unit) -> bool:
        return block.kind in self.processes and block.fits(self._ties[block.kind])

    def _posterior(self, kind: Kind, units: Sequence[Unit]) -> tuple[Array, Array]:
        """Means and covariance of units of a kind; by the prior prices where the kind was never measured."""
        if kind not in self.processes:
            guesses = self._speed * np.array([_prior(unit).sum() for unit in units])
            return guesses, UNPROFILED_STDDEV**2 * np.outer(guesses, guesses)
        mean, covariance = self.processes[kind].posterior(np.array([unit.channels for unit in units], dtype=float))
        return np.maximum(mean, 0.0), covariance

    def _expose(self, units: Sequence[Unit], cost: float) -> Kind | None:
        """Subtracts a variant's other units and keeps the rest; None where one of them was never measured."""
        place = 1 if len(units) == 3 else 0
        others = [unit for index, unit in enumerate(units) if index != place]
        if not all(map(self.is_profiled, others)):
            return None
        rest = sum(float(self._posterior(unit.kind, [unit])[0][0]) for unit in others)
        kind = units[place].kind
        self._exposed.setdefault(kind, []).append((units[place], max(cost - rest, 0.0)))
        return kind

    def _fit(self, kind: Kind | None) -> None:
        if kind is not None:
            points = self._exposed[kind]
            self._ties[kind] = common_ties(unit for unit, _ in points)
            points = points[:: -(-len(points) // MOST_POINTS)]
            channels = np.array([unit.channels for unit, _ in points], dtype=float)
            self.processes[kind] = ChannelGP(channels, np.array([c for _, c in points]), self._kernel)


def _prior(unit: Unit) -> Array:
    return np.array([layer_row(layer, USUAL_WIDTH) @ PRIOR_PRICES for layer in unit.layers])


def _shares(unit: Unit) -> Array:
    """How the layers of a unit share its cost."""
    if len(unit.layers) == 1:
        return np.ones(1)
    prices = _prior(unit)
    return prices / prices.sum() if prices.sum() > 0 else np.full(len(prices), 1 / len(prices))
