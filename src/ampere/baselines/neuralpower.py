"""NeuralPower: every stage of every layer measured alone, a sparse polynomial for each kind and stage, summed.

x_1..x_d  sizes of a layer that differ among those measured, as shares of the largest seen
F_s       amounts: FLOPs, values moved, parameters, and what each class of trailing operations moves

t(layer, stage) = sum over |q| <= K of  a_q x_1^q_1 ... x_d^q_d  +  sum_s b_s F_s,      a, b >= 0
t(network)      = sum over layers and stages of  t(layer, stage)

The degree K is the one that cross-validation prefers. Coefficients are not negative, so most are zero: that takes the
place of the paper's Lasso, and keeps estimates positive beyond the sizes measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import combinations_with_replacement

import numpy as np
from scipy.optimize import nnls

from ampere.core import Layer
from ampere.core.layer import TRAILING_CLASSES
from ampere.estimation.features import Array
from ampere.estimation.kernel_forests import amounts, configuration
from ampere.profiling.isolated import stages_of

from .method import Estimator, Evidence, Method

DEGREES = (1, 2, 3)
FOLDS = 5
Regression = Callable[[Sequence[Layer]], Array]


@lru_cache(maxsize=65536)
def _amounts(layer: Layer) -> tuple[float, ...]:
    moved = {op: sum(t.values_in + t.values_out for t in layer.trailing if t.op == op) for op in TRAILING_CLASSES}
    return (*amounts(layer), *moved.values(), float(len(layer.trailing)))


def polynomial(sizes: Array, degree: int) -> Array:
    """All products of at most so many sizes, the empty one (a constant) first."""
    choices = [c for k in range(degree + 1) for c in combinations_with_replacement(range(sizes.shape[1]), k)]
    return np.stack([np.prod(sizes[:, list(choice)], axis=1) for choice in choices], axis=1)


def regress(layers: Sequence[Layer], costs: Array, sizes_of: Callable[[Layer], tuple[float, ...]]) -> Regression:
    seen = _table(layers, sizes_of)
    differing, largest = np.ptp(seen, axis=0) > 0, np.max(seen, axis=0, initial=1.0)

    def design(layers: Sequence[Layer], degree: int) -> Array:
        sizes = (_table(layers, sizes_of) / largest)[:, differing]
        return np.hstack([polynomial(sizes, degree), _table(layers, _amounts)])

    degree = min(DEGREES, key=lambda k: _cross_validated(design(layers, k), costs))
    prices = _prices(design(layers, degree), costs)
    return lambda layers: design(layers, degree) @ prices


def _table(layers: Sequence[Layer], numbers: Callable[[Layer], tuple[float, ...]]) -> Array:
    return np.array([numbers(layer) for layer in layers], dtype=float).reshape(len(layers), -1)


def _prices(design: Array, costs: Array) -> Array:
    """Non-negative least squares of relative errors."""
    scale = np.max(design, axis=0, initial=0.0)
    scale[scale == 0.0] = 1.0
    prices, _ = nnls(design / scale / costs[:, None], np.ones(len(costs)), maxiter=30 * len(scale))
    return prices / scale


def _cross_validated(design: Array, costs: Array) -> float:
    fold = np.arange(len(costs)) % FOLDS
    if len(costs) < 2 * FOLDS:
        return 0.0  # too few to tell: the lowest degree
    wrong = [
        np.abs(design[fold == f] @ _prices(design[fold != f], costs[fold != f]) / costs[fold == f] - 1)
        for f in range(FOLDS)
    ]
    return float(np.mean(np.concatenate(wrong)))


def fit(evidence: Evidence) -> Estimator:
    regressions: dict[tuple[str, str], Regression] = {}
    stages = list(evidence.stages)
    layers, costs = [network.layers[0] for network in evidence.networks], evidence.costs
    for stage in dict.fromkeys(stages):
        mine = [i for i, s in enumerate(stages) if s == stage]
        regressions["", stage] = regress([layers[i] for i in mine], costs[mine], lambda layer: ())
        for kind in dict.fromkeys(layers[i].kind for i in mine):
            same = [i for i in mine if layers[i].kind == kind]
            regressions[kind, stage] = regress([layers[i] for i in same], costs[same], configuration)

    def seconds(layer: Layer) -> float:
        """A kind that was never measured is estimated from its amounts alone."""
        total = 0.0
        for stage in stages_of(layer):
            found = regressions.get((layer.kind, stage)) or regressions.get(("", stage))
            total += float(found([layer])[0]) if found else 0.0
        return total

    known = lru_cache(maxsize=65536)(seconds)
    return lambda networks: np.array([sum(known(layer) for layer in n.layers) for n in networks], dtype=float)


METHOD = Method("neuralpower", "NeuralPower: stages of single layers, polynomials, summed", "stages", fit)
