"""Strategies to collect measurements. Each is one file here with a STRATEGY, named as the file is."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from ampere.core.errors import UsageError

if TYPE_CHECKING:
    from .strategy import Strategy

STRATEGIES = tuple(sorted(found.name for found in iter_modules(__path__) if found.name != "strategy"))


def find_strategy(method: str, protocol: str = "yardstick") -> Strategy:
    if method not in STRATEGIES:
        near = get_close_matches(method, STRATEGIES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(STRATEGIES)}"
        raise UsageError(f"there is no way to profile called {method!r}: {hint}")
    found: Strategy = import_module(f"{__name__}.{method}").STRATEGY
    if protocol not in found.protocols:
        raise UsageError(f"--method {method} is timed by {' or '.join(found.protocols)} only: leave out --timing")
    return found
