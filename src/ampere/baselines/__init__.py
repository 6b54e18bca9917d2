"""Rival methods: each fits the same measurements and answers with the same signature."""

from collections.abc import Callable, Sequence

from ampere.network import Network
from ampere.surrogate.features import Array

from .flops import fit_flops, fit_flops_intercept
from .least_squares import fit_physics

Estimator = Callable[[Sequence[Network]], Array]  # networks -> seconds a step
Fit = Callable[[Sequence[Network], Array], Estimator]

BASELINES: dict[str, Fit] = {
    "physics": fit_physics,
    "flops": fit_flops,
    "flops_intercept": fit_flops_intercept,
}

__all__ = ["BASELINES", "Estimator", "Fit"]
