"""What users call, and what the command line is made of: each name is loaded when it is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ampere.models.loading import load_model
    from ampere.profiling.measuring import MeasuredStep
    from ampere.profiling.running import ProfilingResult

    from .checking import EnergyCheck, check
    from .comparing import compare
    from .estimating import device, estimate, measure, profile
    from .judging import report, validate
    from .models import Model, ResolvedModel, resolve, trace
    from .options import OptionKeywords, Options, Progress
    from .profiles import (
        CERTAIN_ENOUGH,
        ProfiledEstimate,
        at_current_speed,
        ensure_profile,
        profile_options,
        unsupported_layers,
    )
    from .run import RunPlan, whole_run
    from .shrinking import prune, search
    from .stored_profiles import estimator_of, load_profile, profile_path, stored_profile
    from .tuning import tune

_HOMES = {
    "CERTAIN_ENOUGH": "ampere.api.profiles",
    "EnergyCheck": "ampere.api.checking",
    "MeasuredStep": "ampere.profiling.measuring",
    "Model": "ampere.api.models",
    "OptionKeywords": "ampere.api.options",
    "Options": "ampere.api.options",
    "ProfiledEstimate": "ampere.api.profiles",
    "ProfilingResult": "ampere.profiling.running",
    "Progress": "ampere.api.options",
    "ResolvedModel": "ampere.api.models",
    "RunPlan": "ampere.api.run",
    "at_current_speed": "ampere.api.profiles",
    "check": "ampere.api.checking",
    "compare": "ampere.api.comparing",
    "device": "ampere.api.estimating",
    "ensure_profile": "ampere.api.profiles",
    "estimate": "ampere.api.estimating",
    "estimator_of": "ampere.api.stored_profiles",
    "load_model": "ampere.models.loading",
    "load_profile": "ampere.api.stored_profiles",
    "measure": "ampere.api.estimating",
    "profile": "ampere.api.estimating",
    "profile_options": "ampere.api.profiles",
    "profile_path": "ampere.api.stored_profiles",
    "prune": "ampere.api.shrinking",
    "report": "ampere.api.judging",
    "resolve": "ampere.api.models",
    "search": "ampere.api.shrinking",
    "stored_profile": "ampere.api.stored_profiles",
    "trace": "ampere.api.models",
    "tune": "ampere.api.tuning",
    "unsupported_layers": "ampere.api.profiles",
    "validate": "ampere.api.judging",
    "whole_run": "ampere.api.run",
}

__all__ = [
    "CERTAIN_ENOUGH",
    "EnergyCheck",
    "MeasuredStep",
    "Model",
    "OptionKeywords",
    "Options",
    "ProfiledEstimate",
    "ProfilingResult",
    "Progress",
    "ResolvedModel",
    "RunPlan",
    "at_current_speed",
    "check",
    "compare",
    "device",
    "ensure_profile",
    "estimate",
    "estimator_of",
    "load_model",
    "load_profile",
    "measure",
    "profile",
    "profile_options",
    "profile_path",
    "prune",
    "report",
    "resolve",
    "search",
    "stored_profile",
    "trace",
    "tune",
    "unsupported_layers",
    "validate",
    "whole_run",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ampere.api' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
