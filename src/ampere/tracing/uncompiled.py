"""PyTorch without its compiler, which takes a second to import and is not in use on shapes alone.

Three places of PyTorch import `torch._dynamo` though nothing is compiled: tensors without values read its settings,
functions that it must not look into import it when they are first called, and so does the step of an optimizer.
"""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any

import torch

COMPILER = "torch._dynamo"
SETTINGS = f"{COMPILER}.config"
KEPT = "__dynamo_disable"  # where PyTorch keeps what such a function calls, from its first call on


@contextmanager
def without_compiler() -> Iterator[None]:
    """Inside, tensors without values and optimizers do not import the compiler. Code that asks for it gets it."""
    if COMPILER in sys.modules:
        yield
        return
    with _settings_alone(), _called_as_they_are():
        yield


class _Settings:
    """In place of the compiler: its settings, and for whatever else is asked of it the compiler itself."""

    def __init__(self, config: Any) -> None:
        self.config = config

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(COMPILER), name)


@contextmanager
def _settings_alone() -> Iterator[None]:
    found = PathFinder.find_spec(SETTINGS, [f"{place}/_dynamo" for place in torch.__path__])
    if found is None or found.loader is None:
        yield
        return
    if SETTINGS not in sys.modules:
        sys.modules[SETTINGS] = module_from_spec(found)
        found.loader.exec_module(sys.modules[SETTINGS])
    instead = vars(torch)["_dynamo"] = _Settings(sys.modules[SETTINGS])
    try:
        yield
    finally:
        if vars(torch).get("_dynamo") is instead:  # PyTorch imports the whole when it is next asked for
            del vars(torch)["_dynamo"]


@contextmanager
def _called_as_they_are() -> Iterator[None]:
    """Functions that the compiler must not look into, without asking it. Afterwards PyTorch finds them as before."""
    plain = [f for f in _guarded(len(sys.modules)) if not hasattr(f, KEPT)]
    for function in plain:
        setattr(function, KEPT, function)
    try:
        yield
    finally:
        for function in plain:
            delattr(function, KEPT)


@lru_cache(maxsize=1)
def _guarded(modules: int) -> tuple[Any, ...]:
    """Those functions, sought again where more modules are imported than the last time."""
    guard = torch.optim.Optimizer.add_param_group.__code__  # all of them have this code around them
    around = [f for f in gc.get_referrers(guard) if inspect.isfunction(f)] if "fn" in guard.co_freevars else []
    cells = [dict(zip(guard.co_freevars, f.__closure__ or (), strict=True))["fn"] for f in around]
    return tuple(dict.fromkeys(cell.cell_contents for cell in cells))


def update(optimizer: Any) -> None:
    """One step of an optimizer, without the breaks that it makes for the compiler."""
    with torch.no_grad():
        inspect.unwrap(type(optimizer).step)(optimizer)
