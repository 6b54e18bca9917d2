"""Layers and a constant: every layer costs the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ampere.core import Network
from ampere.estimation.features import Array

from .line import fit_line
from .method import Method


def layers(networks: Sequence[Network]) -> Array:
    return np.array([float(sum(layer.kind != "nonparametric" for layer in n.layers)) for n in networks])


METHOD = Method("layers", "number of layers and a constant", "networks", lambda evidence: fit_line(layers, evidence))
