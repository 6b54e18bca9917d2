"""One layer kind's cost over its channels, as the paper fits it: a Matern 5/2 process with a constant mean.

    x   channels, each axis scaled to 0..1 between its bounds        y   cost in seconds
    y = mean + s f(x) + noise,   f ~ GP(0, Matern52(d / l)),   noise variance = r s^2

Length scale l and noise share r are those of the largest marginal likelihood on a grid; s follows from them.
A grid, because two to forty points need no optimiser that could end in a poor place.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .features import Array
from .gp import distances, matern52

LENGTHS = np.geomspace(0.1, 10.0, 13)
NOISE_SHARES = np.array([1e-4, 1e-3, 1e-2, 3e-2, 0.1, 0.3])
SINGLE_POINT_DOUBT = 0.3  # of one point, relative: nothing tells how the cost changes
LEAST_SCALE = 1e-3  # of the mean: what costs the same everywhere was measured with some noise all the same


class ChannelGP:
    def __init__(self, channels: Array, costs: Array) -> None:
        """`channels`: a row a point."""
        self.channels = channels
        self.low, self.high = channels.min(axis=0), channels.max(axis=0)
        self.mean = float(costs.mean())
        self.typical = float(np.mean(np.abs(costs)))
        self._points, residual = self._scaled(channels), costs - self.mean
        self.length, self.noise_share = self._likeliest(residual)
        covariance = matern52(distances(self._points, self._points) / self.length)
        self._factor = cho_factor(covariance + self.noise_share * np.eye(len(costs)), lower=True)
        self._solved = cho_solve(self._factor, residual)
        variance = float(residual @ self._solved) / len(costs)
        least = SINGLE_POINT_DOUBT if len(costs) == 1 else LEAST_SCALE
        self._scale2 = max(variance, (least * self.typical) ** 2)

    def posterior(self, channels: Array) -> tuple[Array, Array]:
        """Means and covariance of the cost itself, without the noise of measuring it."""
        points = self._scaled(channels)
        near = matern52(distances(points, self._points) / self.length)
        own = matern52(distances(points, points) / self.length)
        covariance = own - near @ cho_solve(self._factor, near.T)
        return self.mean + near @ self._solved, self._scale2 * covariance

    def deviations(self, channels: Array) -> Array:
        _, covariance = self.posterior(channels)
        return np.sqrt(np.maximum(np.diag(covariance), 0.0))

    def _scaled(self, channels: Array) -> Array:
        span = self.high - self.low
        return (channels - self.low) / np.where(span > 0, span, np.maximum(self.high, 1.0))

    def _likeliest(self, residual: Array) -> tuple[float, float]:
        """log p = -n/2 log(residual' K^-1 residual / n) - 1/2 log |K|, with the scale s at its best."""
        count = len(residual)
        apart = distances(self._points, self._points)
        grid = [(length, share) for length in LENGTHS for share in NOISE_SHARES]
        kernels = matern52(apart[None] / np.array([length for length, _ in grid])[:, None, None])
        kernels += np.array([share for _, share in grid])[:, None, None] * np.eye(count)
        factors = np.linalg.cholesky(kernels)
        white = np.linalg.solve(factors, np.broadcast_to(residual[:, None], (len(grid), count, 1)))[:, :, 0]
        variance = np.sum(white**2, axis=1) / count
        log_diagonals = np.sum(np.log(np.diagonal(factors, axis1=1, axis2=2)), axis=1)
        evidence = (
            -0.5 * count * np.log(np.maximum(variance, (LEAST_SCALE * self.typical) ** 2 + 1e-300)) - log_diagonals
        )
        return grid[int(np.argmax(evidence))]
