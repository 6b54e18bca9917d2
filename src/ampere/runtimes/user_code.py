"""Finding a user's own code: `package.module:function` or `/folder/file.py:function`."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Callable

from ampere.core.errors import WorkerError


def find_factory(reference: str) -> Callable[..., Any]:
    place, _, name = reference.rpartition(":")
    if not place:
        raise failed(f"{reference!r} is not of the form module:function or file.py:function")
    module = _from_file(place) if place.endswith(".py") else importlib.import_module(place)
    factory = getattr(module, name, None)
    if not callable(factory):
        raise failed(f"{place} has no function {name!r}")
    found: Callable[..., Any] = factory
    return found


def _from_file(place: str) -> ModuleType:
    """Imported once a worker: a user's file may import large libraries."""
    path = Path(place).resolve()
    name = f"ampere_workload_{path}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.exists():
        raise failed(f"{path} is not there")
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def failed(message: str) -> WorkerError:
    return WorkerError("variant_failed", message)
