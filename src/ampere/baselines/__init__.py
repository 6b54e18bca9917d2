"""Baseline methods: each file here declares one or more `Method`s, and whatever file is here takes part."""

from importlib import import_module
from pkgutil import iter_modules

from .method import Estimator, Evidence, Method, evidence_of

SHARED = ("answers", "loop_nests", "method")  # files that declare no method


def _declared() -> dict[str, Method]:
    files = [found.name for found in iter_modules(__path__) if found.name not in SHARED]
    values = [value for file in files for value in vars(import_module(f"{__name__}.{file}")).values()]
    return {method.name: method for method in values if isinstance(method, Method)}


METHODS: dict[str, Method] = _declared()

__all__ = ["METHODS", "Estimator", "Evidence", "Method", "evidence_of"]
