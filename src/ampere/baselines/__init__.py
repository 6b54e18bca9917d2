"""Rival methods. Each is one file here with a METHOD; whatever file is here takes part."""

from importlib import import_module
from pkgutil import iter_modules

from .method import Estimator, Evidence, Method, evidence_of


def _found() -> dict[str, Method]:
    modules = [import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__)]
    methods: list[Method] = [module.METHOD for module in modules if hasattr(module, "METHOD")]
    return {method.name: method for method in methods}


METHODS: dict[str, Method] = _found()

__all__ = ["METHODS", "Estimator", "Evidence", "Method", "evidence_of"]
