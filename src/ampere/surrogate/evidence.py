"""How probable measurements are under given hyperparameters, and how that changes with each of them.

    K        covariance of what was measured          r      what physics leaves over
    theta    the logarithm of a hyperparameter        G      (K^-1 r r^T K^-1 - K^-1) / 2

    log p(r) = -r^T K^-1 r / 2 - log det K / 2        d log p / d theta = sum_ij G_ij dK_ij / d theta

A kind's part of K is W k W^T, so that its slopes are sums of (W^T G W) * dk. Along a length scale l of coordinate x
    d matern52(d) / d log l = 5/3 (1 + sqrt5 d) exp(-sqrt5 d) (x - x')^2 / l^2
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky
from scipy.linalg.lapack import dpotri, dpotrs

from .features import Array, is_waste
from .gp import SAME, SQRT5, distances, kernel
from .hyperparameters import Hyperparameters
from .stack import ALLOCATOR_MEAN_DOUBT, ALLOCATOR_OCTAVES, NETWORK_OCTAVES, Stack

Slopes = dict[str, Array]
IMPOSSIBLE = -1e12


class Evidence:
    """What does not depend on hyperparameters is computed once."""

    def __init__(self, stack: Stack, costs: Array, noise: Array, doubt: Array) -> None:
        self._stack, self._residual = stack, costs - stack.physics
        sizes, both = np.outer(stack.physics, stack.physics), np.outer(stack.system, stack.system)
        places = stack.places
        self._network = sizes * kernel(places / NETWORK_OCTAVES, places / NETWORK_OCTAVES)
        self._allocator = sizes * both * kernel(places / ALLOCATOR_OCTAVES, places / ALLOCATOR_OCTAVES)
        doubted = stack.rows * doubt
        self._fixed = doubted @ doubted.T + ALLOCATOR_MEAN_DOUBT**2 * sizes * both + np.diag(noise * costs**2)
        self._squares = costs**2
        self._grains = float(np.median(costs)) * costs

    def __call__(self, hyper: Hyperparameters) -> tuple[float, Slopes]:
        """log p(costs), up to a constant, and its slopes along the logarithms of the hyperparameters."""
        parts = {kind: _Part(self._stack, kind, hyper) for kind in self._stack.weights}
        whole = self._fixed + hyper.network**2 * self._network + hyper.allocator**2 * self._allocator
        whole.flat[:: len(whole) + 1] += hyper.floor**2 * self._squares + hyper.grain**2 * self._grains
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
            "floor": np.array(2 * hyper.floor**2 * (np.diag(g) @ self._squares)),
            "grain": np.array(2 * hyper.grain**2 * (np.diag(g) @ self._grains)),
        }
        return value, slopes | _shared([part.slopes(g) for part in parts.values()])


class _Part:
    """One layer kind's part of the covariance."""

    def __init__(self, stack: Stack, kind: str, hyper: Hyperparameters) -> None:
        self._kind, self._weights, self._own = kind, stack.weights[kind], hyper.own
        self._variance = hyper.residual_of(kind) ** 2
        self._scaled = stack.positions[kind] / hyper.lengths(kind, stack.positions[kind].shape[1])
        apart = SQRT5 * distances(self._scaled, self._scaled)
        self._decay = np.exp(-apart)
        self._same = apart < SQRT5 * SAME
        self._line = 1.0 + apart
        self._matern = (self._line + apart * apart / 3.0) * self._decay
        near = (1.0 - self._own) * self._matern + self._own * self._same
        self.covariance = self._variance * (self._weights @ (self._weights @ near).T)

    def slopes(self, g: Array) -> Slopes:
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
    """What kinds have in common changes all of them."""
    total: Slopes = {name: np.array(0.0) for name in ("octaves", "waste_octaves", "own")}
    for part in parts:
        for name, slope in part.items():
            total[name] = total[name] + slope if name in total else slope
    total["residual"] = np.sum([s for name, s in total.items() if name.startswith("spread.")], axis=0)
    return total
