"""How many joules training a neural network will cost on a device, before anyone trains it.

Everything public is listed here and loaded when it is first used, so that importing costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ampere.api import (
        EnergyCheck,
        Options,
        Progress,
        check,
        compare,
        device,
        estimate,
        load_model,
        measure,
        profile,
        prune,
        report,
        search,
        trace,
        tune,
        validate,
    )
    from ampere.api.scheduling import schedule
    from ampere.budget import Budget
    from ampere.comparison import Comparison, Ranking
    from ampere.core import Layer, Measurement, Meter, Network, TrainingSetup
    from ampere.core.errors import AmpereError
    from ampere.devices import Device
    from ampere.estimation.estimate import Estimate
    from ampere.estimation.estimator import Estimator
    from ampere.profiling.measuring import MeasuredStep
    from ampere.storage.profile import Profile
    from ampere.web.client import Client

_HOMES = {
    "AmpereError": "ampere.core.errors",
    "Budget": "ampere.budget",
    "Client": "ampere.web.client",
    "Comparison": "ampere.comparison",
    "Device": "ampere.devices",
    "EnergyCheck": "ampere.api",
    "Estimate": "ampere.estimation.estimate",
    "Estimator": "ampere.estimation.estimator",
    "Layer": "ampere.core",
    "MeasuredStep": "ampere.profiling.measuring",
    "Measurement": "ampere.core",
    "Meter": "ampere.core",
    "Network": "ampere.core",
    "Options": "ampere.api",
    "Profile": "ampere.storage.profile",
    "Progress": "ampere.api",
    "Ranking": "ampere.comparison",
    "TrainingSetup": "ampere.core",
    "check": "ampere.api",
    "compare": "ampere.api",
    "device": "ampere.api",
    "estimate": "ampere.api",
    "load_model": "ampere.api",
    "load_pruned": "ampere.pruning.saving",
    "measure": "ampere.api",
    "profile": "ampere.api",
    "prune": "ampere.api",
    "report": "ampere.api",
    "schedule": "ampere.api.scheduling",
    "search": "ampere.api",
    "trace": "ampere.api",
    "tune": "ampere.api",
    "validate": "ampere.api",
}

__version__ = "0.1.0"
__all__ = [
    "AmpereError",
    "Budget",
    "Client",
    "Comparison",
    "Device",
    "EnergyCheck",
    "Estimate",
    "Estimator",
    "Layer",
    "MeasuredStep",
    "Measurement",
    "Meter",
    "Network",
    "Options",
    "Profile",
    "Progress",
    "Ranking",
    "TrainingSetup",
    "__version__",
    "check",
    "compare",
    "device",
    "estimate",
    "load_model",
    "load_pruned",
    "measure",
    "profile",
    "prune",
    "report",
    "schedule",
    "search",
    "trace",
    "tune",
    "validate",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ampere' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> "list[str]":
    return __all__
