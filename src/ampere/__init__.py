"""How many joules training a neural network will cost on a device, before anyone trains it.

Everything public is listed here and loaded when it is first used, so that importing costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ampere.api import compare, estimate, load_model, measure, profile, prune, trace, validate
    from ampere.budget import Budget
    from ampere.comparison import Comparison, Ranking
    from ampere.errors import AmpereError
    from ampere.estimation import Estimate, Estimator
    from ampere.network import Layer, Measurement, Meter, Network, TrainingSetup
    from ampere.profiles.profile import Profile
    from ampere.searching.searching import search

_HOMES = {
    "AmpereError": "ampere.errors",
    "Budget": "ampere.budget",
    "Comparison": "ampere.comparison",
    "Estimate": "ampere.estimation",
    "Estimator": "ampere.estimation",
    "Layer": "ampere.network",
    "Measurement": "ampere.network",
    "Meter": "ampere.network",
    "Network": "ampere.network",
    "Profile": "ampere.profiles.profile",
    "Ranking": "ampere.comparison",
    "TrainingSetup": "ampere.network",
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
