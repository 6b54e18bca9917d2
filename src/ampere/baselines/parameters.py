"""Parameters and a constant: a model costs what it weighs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ampere.core import Network, work
from ampere.estimation.features import Array

from .line import fit_line
from .method import Method


def parameters(networks: Sequence[Network]) -> Array:
    return np.array([float(sum(work(layer).parameters for layer in n.layers)) for n in networks])


METHOD = Method(
    "parameters", "trained parameters and a constant", "networks", lambda evidence: fit_line(parameters, evidence)
)
