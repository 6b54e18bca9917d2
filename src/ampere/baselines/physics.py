"""Physics alone: non-negative least squares on the work of layers, without a Gaussian process."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ampere.core import Network
from ampere.core.kinds import VECTOR_WIDTHS
from ampere.estimation.features import Array, network_features
from ampere.estimation.prices import fit_prices

from .method import Estimator, Evidence, Method


def rows(networks: Sequence[Network], width: int) -> Array:
    return np.array([network_features(n, width).row for n in networks])


def fit(evidence: Evidence) -> Estimator:
    """Prices of work, at the vector width that describes the measurements best."""
    seen, costs = evidence.networks, evidence.costs
    fits = [(width, fit_prices(rows(seen, width), costs)) for width in VECTOR_WIDTHS]
    width, prices = min(fits, key=lambda found: float(np.mean(np.abs(rows(seen, found[0]) @ found[1] / costs - 1))))
    return lambda networks: rows(networks, width) @ prices


METHOD = Method("physics", "least squares on the work of layers", "all", fit)
