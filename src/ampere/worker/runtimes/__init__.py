"""Runtimes: each trains with one library. A new one is a file and an entry here, and passes the conformance suite."""

import importlib
from typing import Dict, Optional

from ..errors import WorkerError, bad_request
from .runtime import Runtime, Training

# Each under the name of its library.
RUNTIMES = {"torch": "torch_runtime"}
REMEDIES = {"torch": "PyTorch is not installed where the worker runs; pip install 'ampere-energy[torch]'"}

_loaded: Dict[str, Runtime] = {}


def find_runtime(name: str) -> Runtime:
    """The runtime of that name; its library is imported at the first call."""
    if name not in RUNTIMES:
        raise bad_request("runtime {!r} is none of {}".format(name, ", ".join(RUNTIMES)))
    if name not in _loaded:
        _loaded[name] = _load(name)
    return _loaded[name]


def _load(name: str) -> Runtime:
    try:
        importlib.import_module(name)
    except (ImportError, OSError) as problem:  # OSError: a library that it links to is not there
        raise WorkerError("runtime_missing", f"{REMEDIES[name]} ({problem})") from None
    module = importlib.import_module("." + RUNTIMES[name], __name__)
    runtime: Runtime = module.create()
    return runtime


def installed_version(library: str) -> Optional[str]:
    """Without importing it: that takes seconds."""
    from importlib import metadata

    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None


__all__ = ["RUNTIMES", "Runtime", "Training", "find_runtime", "installed_version"]
