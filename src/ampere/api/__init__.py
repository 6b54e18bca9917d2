"""What users call: load, trace, profile, estimate, compare, measure, validate, prune."""

from ampere.models.loading import load_model

from .estimating import compare, estimate, estimator_of, present_condition, prune
from .learning import profile, stored_profile
from .models import network_of, trace
from .training import measure, validate

__all__ = [
    "compare",
    "estimate",
    "estimator_of",
    "load_model",
    "measure",
    "network_of",
    "present_condition",
    "profile",
    "prune",
    "stored_profile",
    "trace",
    "validate",
]
