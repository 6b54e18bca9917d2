"""What users call, and what the command line is made of."""

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
    estimator_of,
    load_profile,
    profile_options,
    profile_path,
    stored_profile,
    unsupported_layers,
)
from .run import RunPlan, whole_run
from .shrinking import prune, search
from .tuning import tune

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
