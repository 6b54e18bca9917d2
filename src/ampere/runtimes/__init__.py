"""Runtimes: each trains with one library. A new one is a file and an entry in the table, and passes the tests in
conformance.py."""

import importlib
from typing import Dict

from ampere.core.errors import WorkerError

from .processor import CPU, Processor
from .runtime import Runtime, Training, placed
from .table import Description, description_of, installed

_loaded: Dict[str, Runtime] = {}


def find_runtime(name: str) -> Runtime:
    """The runtime of that name; its library is imported at the first call."""
    if name not in _loaded:
        _loaded[name] = _load(name, description_of(name))
    return _loaded[name]


def _load(name: str, description: Description) -> Runtime:
    try:
        runtime: Runtime = importlib.import_module(description.module, __name__).create()
    except WorkerError:
        raise
    except (ImportError, OSError) as problem:  # OSError: a library that it links to is not there
        raise WorkerError("runtime_missing", f"{description.install} ({problem})") from None
    except Exception as problem:
        line = " ".join(f"{type(problem).__name__}: {problem}".split())
        raise WorkerError("runtime_missing", f"{name} does not start here ({line}): update its packages") from None
    return runtime


__all__ = [
    "CPU",
    "Description",
    "Processor",
    "Runtime",
    "Training",
    "description_of",
    "find_runtime",
    "installed",
    "placed",
]
