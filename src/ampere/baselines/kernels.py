"""Kernels, as nn-Meter does it: each operation measured alone, a random forest for each kind, summed.

t(network) = sum over operations o and stages s of  forest_of(kind(o), s)(configuration(o))
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ampere.core import Layer, Network
from ampere.estimation.features import Array
from ampere.estimation.kernel_forests import KernelForests, unavailable
from ampere.profiling.isolated import operations, stages_of

from .method import Estimator, Evidence, Method


def fit(evidence: Evidence) -> Estimator:
    alone = [network.layers[0] for network in evidence.networks]
    forests = KernelForests(alone, list(evidence.stages), evidence.costs)

    def estimate(networks: Sequence[Network]) -> Array:
        parts = {layer: _parts(layer) for network in networks for layer in network.layers}
        costs = forests.costs(part for layer_parts in parts.values() for part in layer_parts)
        layers = {layer: sum(costs[part] for part in layer_parts) for layer, layer_parts in parts.items()}
        return np.array([sum(layers[layer] for layer in network.layers) for network in networks], dtype=float)

    return estimate


def _parts(layer: Layer) -> list[tuple[Layer, str]]:
    return [(operation, stage) for operation in operations(layer) for stage in stages_of(operation)]


METHOD = Method("kernels", "kernels as nn-Meter: single operations, forests, summed", "kernels", fit, unavailable)
