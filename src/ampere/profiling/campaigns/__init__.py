"""Ways to gather measurements. Each is one file here with a CAMPAIGN, named as the file is."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from ampere.errors import UsageError

if TYPE_CHECKING:
    from .campaign import Campaign

NOT_CAMPAIGNS = {"campaign", "guessing"}
CAMPAIGNS = tuple(sorted(found.name for found in iter_modules(__path__) if found.name not in NOT_CAMPAIGNS))


def find_campaign(method: str, protocol: str = "yardstick") -> Campaign:
    if method not in CAMPAIGNS:
        near = get_close_matches(method, CAMPAIGNS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(CAMPAIGNS)}"
        raise UsageError(f"there is no way to profile called {method!r}: {hint}")
    found: Campaign = import_module(f"{__name__}.{method}").CAMPAIGN
    if protocol not in found.protocols:
        raise UsageError(f"--method {method} is timed by {' or '.join(found.protocols)} only: leave out --protocol")
    return found
