"""The most probable hyperparameters: marginal likelihood times a prior, climbed by gradient.

    K        covariance of the measured costs         r      their residual after physics
    theta    the logarithm of a hyperparameter        G      (K^-1 r r^T K^-1 - K^-1) / 2

    log p(r) = -r^T K^-1 r / 2 - log det K / 2        d log p / d theta = sum_ij G_ij dK_ij / d theta

A kind's part of K is W k W^T, so that its slopes are sums of (W^T G W) * dk. Along a length scale l of coordinate x
    d matern52(d) / d log l = 5/3 (1 + sqrt5 d) exp(-sqrt5 d) (x - x')^2 / l^2

The prior is log-normal around typical values.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from .design_matrix import ALLOCATOR_OCTAVES, NETWORK_OCTAVES, DesignMatrix, loop_covariance
from .features import Array, is_waste
from .gaussian_process import SAME, SQRT5, distances, kernel
from .hyperparameters import Hyperparameters

Slopes = dict[str, Array]

IMPOSSIBLE = -1e12  # log likelihood where the covariance is not positive definite
LEARNT = ("residual", "octaves", "waste_octaves", "own", "network", "floor", "grain", "allocator")
TYPICAL = Hyperparameters()
PRIOR_WIDTH = {"grain": 1.5}  # standard deviation of the logarithm
USUAL_PRIOR_WIDTH = 0.7  # a factor of two either way is common
CONVERGED = 2e-5  # relative gain of a step that ends a search
FARTHEST = 3.0  # distance from typical, in logarithms
MOST_OWN = 0.9


class MarginalLikelihood:
    """The log likelihood of measured costs as a function of hyperparameters, with its gradient.

    Everything that does not depend on hyperparameters is computed once.
    """

    def __init__(
        self, design: DesignMatrix, residual: Array, noise: Array, floors: Array, grains: Array, price_stddev: Array
    ) -> None:
        self._design, self._residual, self._floors, self._grains = design, residual, floors, grains
        sizes, both = np.outer(design.physics, design.physics), np.outer(design.system, design.system)
        wholes, places = design.wholes, design.wholes.places
        self._network = sizes * kernel(places / NETWORK_OCTAVES, places / NETWORK_OCTAVES)
        self._allocator = sizes * both * kernel(places / ALLOCATOR_OCTAVES, places / ALLOCATOR_OCTAVES)
        deviations = design.rows * price_stddev
        self._fixed = deviations @ deviations.T + loop_covariance(wholes, wholes) * sizes * both + np.diag(noise)

    def __call__(self, hyper: Hyperparameters) -> tuple[float, Slopes]:
        """log p(costs), up to a constant, and its slopes along the logarithms of the hyperparameters."""
        from scipy.linalg import cholesky
        from scipy.linalg.lapack import dpotri, dpotrs

        parts = {kind: _Part(self._design, kind, hyper) for kind in self._design.weights}
        whole = self._fixed + hyper.network**2 * self._network + hyper.allocator**2 * self._allocator
        whole.flat[:: len(whole) + 1] += hyper.floor**2 * self._floors + hyper.grain**2 * self._grains
        for part in parts.values():
            whole += part.covariance
        try:
            factor = cholesky(whole, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            return IMPOSSIBLE, {}
        solved = dpotrs(factor, self._residual, lower=1)[0]
        value = -0.5 * float(self._residual @ solved) - float(np.sum(np.log(np.diag(factor))))
        inverse = dpotri(factor, lower=1)[0]
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        g = 0.5 * (np.outer(solved, solved) - inverse)
        slopes = {
            "network": np.array(2 * hyper.network**2 * np.sum(g * self._network)),
            "allocator": np.array(2 * hyper.allocator**2 * np.sum(g * self._allocator)),
            "floor": np.array(2 * hyper.floor**2 * (np.diag(g) @ self._floors)),
            "grain": np.array(2 * hyper.grain**2 * (np.diag(g) @ self._grains)),
        }
        return value, slopes | _shared([part.slopes(g) for part in parts.values()])


class _Part:
    """One layer kind's part of the covariance."""

    def __init__(self, design: DesignMatrix, kind: str, hyper: Hyperparameters) -> None:
        self._kind, self._weights, self._own = kind, design.weights[kind], hyper.own
        self._variance = hyper.residual_of(kind) ** 2
        self._scaled = design.positions[kind] / hyper.lengths(kind, design.positions[kind].shape[1])
        apart = SQRT5 * distances(self._scaled, self._scaled)
        self._decay = np.exp(-apart)
        self._same = apart < SQRT5 * SAME
        self._line = 1.0 + apart
        self._matern = (self._line + apart * apart / 3.0) * self._decay
        near = (1.0 - self._own) * self._matern + self._own * self._same
        self.covariance = self._variance * (self._weights @ (self._weights @ near).T)

    def slopes(self, g: Array) -> Slopes:
        """The log likelihood's slopes along this kind's hyperparameters and the shared ones."""
        pulls = self._variance * (self._weights.T @ (self._weights.T @ g).T)
        smooth, alone = float(np.sum(pulls * self._matern)), float(np.sum(pulls[self._same]))
        along = pulls * self._line * self._decay * ((1.0 - self._own) * 5.0 / 3.0)
        x = self._scaled  # sum_ij along_ij (x_i - x_j)^2, coordinate by coordinate
        lengths = 2.0 * (along.sum(axis=1) @ (x * x) - np.sum(x * (along @ x), axis=0))
        waste = np.array(is_waste(self._kind, x.shape[1]))
        return {
            f"stretch.{self._kind}": lengths,
            f"spread.{self._kind}": np.array(2.0 * ((1.0 - self._own) * smooth + self._own * alone)),
            "octaves": np.array(lengths[~waste].sum()),
            "waste_octaves": np.array(lengths[waste].sum()),
            "own": np.array(self._own * (alone - smooth)),
        }


def _shared(parts: list[Slopes]) -> Slopes:
    """Slopes of all kinds together: those along shared hyperparameters are summed over kinds."""
    total: Slopes = {name: np.array(0.0) for name in ("octaves", "waste_octaves", "own")}
    for part in parts:
        for name, slope in part.items():
            total[name] = total[name] + slope if name in total else slope
    total["residual"] = np.sum([s for name, s in total.items() if name.startswith("spread.")], axis=0)
    return total


class OutOfTime(Exception):
    """The search has used up its seconds; the best hyperparameters so far are returned."""


def most_probable(
    marginal_likelihood: Callable[[Hyperparameters], tuple[float, Slopes]],
    coordinates: Mapping[str, int],
    start: Hyperparameters,
    evaluations: int,
    seconds: float = float("inf"),
    freedom: float = 1.0,
    other_starts: Sequence[Hyperparameters] = (),
) -> Hyperparameters:
    """The most probable hyperparameters, searched from `start` and then from others; `freedom` widens their prior.

    `coordinates` has the number of coordinates of each measured layer kind; values of other kinds stay as in `start`.
    """
    from scipy.optimize import minimize

    layout = _Layout(coordinates)
    widths = freedom * layout.widths
    best, lowest, began = layout.pack(start), float("inf"), time.perf_counter()

    def loss(logs: Array) -> tuple[float, Array]:
        nonlocal best, lowest
        if time.perf_counter() - began > seconds and lowest < float("inf"):
            raise OutOfTime
        value, slopes = marginal_likelihood(layout.unpack(logs, start))
        off = (logs - layout.typical) / widths
        total = 0.5 * float(off @ off) - value
        if total < lowest:
            best, lowest = logs.copy(), total
        return total, off / widths - layout.flat(slopes)

    bounds = np.stack([layout.low, layout.high], axis=1)
    options = {"maxfun": evaluations, "ftol": CONVERGED}
    with suppress(OutOfTime):
        for first in (start, *other_starts):
            place = np.clip(layout.pack(first), layout.low, layout.high)
            minimize(loss, place, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return layout.unpack(best, start)


class _Layout:
    """Hyperparameters as one vector of logarithms: those of all kinds, then each kind's spread and stretches."""

    def __init__(self, coordinates: Mapping[str, int]) -> None:
        self._kinds = dict(coordinates)
        self._keys = [*LEARNT, *(key for kind in self._kinds for key in (f"spread.{kind}", f"stretch.{kind}"))]
        self._sizes = [self._kinds[key[8:]] if key.startswith("stretch.") else 1 for key in self._keys]
        self.typical = self.pack(TYPICAL)
        widths = [PRIOR_WIDTH.get(key, USUAL_PRIOR_WIDTH) for key in self._keys]
        self.widths = np.repeat(widths, self._sizes)
        self.low, self.high = self.typical - FARTHEST, self.typical + FARTHEST
        self.high[LEARNT.index("own")] = np.log(MOST_OWN)

    def pack(self, hyper: Hyperparameters) -> Array:
        """The vector of these hyperparameters."""
        values = [getattr(hyper, name) for name in LEARNT]
        for kind, count in self._kinds.items():
            values += [hyper.spread_of(kind), *hyper.stretches(kind, count)]
        return np.log(np.array(values, dtype=float))

    def unpack(self, logs: Array, start: Hyperparameters) -> Hyperparameters:
        """The hyperparameters of this vector; those that it does not hold are taken from `start`."""
        parts = dict(zip(self._keys, np.split(np.exp(logs), np.cumsum(self._sizes)[:-1]), strict=True))
        spread = {kind: float(parts[f"spread.{kind}"][0]) for kind in self._kinds}
        stretch = {kind: tuple(parts[f"stretch.{kind}"].tolist()) for kind in self._kinds}
        numbers: dict[str, Any] = {name: float(parts[name][0]) for name in LEARNT}
        return replace(start, **numbers, spread={**start.spread, **spread}, stretch={**start.stretch, **stretch})

    def flat(self, slopes: Slopes) -> Array:
        """Slopes in the order of the vector."""
        if not slopes:  # the covariance was not positive definite
            return np.zeros(len(self.typical))
        return np.concatenate([np.atleast_1d(slopes[key]) for key in self._keys])
