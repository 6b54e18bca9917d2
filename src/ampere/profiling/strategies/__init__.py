"""Strategies to collect measurements. Each is a file here that defines STRATEGY, and is named after the file."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from ampere.core.errors import UsageError

if TYPE_CHECKING:
    from .strategy import Strategy

STRATEGIES = tuple(sorted(found.name for found in iter_modules(__path__) if found.name != "strategy"))


def find_strategy(method: str, timing: str = "yardstick") -> Strategy:
    """The strategy of this name. Raises UsageError where there is none, or where it cannot be timed this way."""
    if method not in STRATEGIES:
        near = get_close_matches(method, STRATEGIES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(STRATEGIES)}"
        raise UsageError(f"there is no profiling method called {method!r}: {hint}")
    found: Strategy = import_module(f"{__name__}.{method}").STRATEGY
    if timing not in found.timings:
        raise UsageError(f"--method {method} can only be timed by {' or '.join(found.timings)}: leave out --timing")
    return found
