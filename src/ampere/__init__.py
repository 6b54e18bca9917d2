"""How many joules training a neural network will cost on a device, before anyone trains it.

Everything public is listed here and loaded when it is first used, so that importing costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ampere.budget import Budget
    from ampere.comparison import Comparison, Ranking
    from ampere.core import Layer, Measurement, Meter, Network, TrainingSetup
    from ampere.core.errors import AmpereError
    from ampere.estimation.estimate import Estimate, Estimator
    from ampere.models.loading import load_model
    from ampere.searching.searching import search
    from ampere.storage.profile import Profile

    from .api import compare, estimate, measure, profile, prune, trace, validate

_HOMES = {
    "AmpereError": "ampere.core.errors",
    "Budget": "ampere.budget",
    "Comparison": "ampere.comparison",
    "Estimate": "ampere.estimation.estimate",
    "Estimator": "ampere.estimation.estimate",
    "Layer": "ampere.core",
    "Measurement": "ampere.core",
    "Meter": "ampere.core",
    "Network": "ampere.core",
    "Profile": "ampere.storage.profile",
    "Ranking": "ampere.comparison",
    "TrainingSetup": "ampere.core",
    "compare": "ampere.api",
    "estimate": "ampere.api",
    "load_model": "ampere.api",
    "measure": "ampere.api",
    "profile": "ampere.api",
    "prune": "ampere.api",
    "search": "ampere.searching.searching",
    "trace": "ampere.api",
    "validate": "ampere.api",
}

__version__ = "0.1.0"
__all__ = [
    "AmpereError",
    "Budget",
    "Comparison",
    "Estimate",
    "Estimator",
    "Layer",
    "Measurement",
    "Meter",
    "Network",
    "Profile",
    "Ranking",
    "TrainingSetup",
    "__version__",
    "compare",
    "estimate",
    "load_model",
    "measure",
    "profile",
    "prune",
    "search",
    "trace",
    "validate",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ampere' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
