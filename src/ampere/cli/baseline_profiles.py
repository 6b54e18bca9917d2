"""Profiles for methods that learn from other measurements than ours: stored ones, or new ones made in as long."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ampere.core.errors import ProfileError

from .model_argument import name_of
from .options import setup_of
from .run_profiling import run_profiling

if TYPE_CHECKING:
    from ampere.models.loading import LoadedModel
    from ampere.storage.profile import Profile

USUAL = ("additive", "yardstick")


def rivals(model: str | LoadedModel, options: Namespace, methods: Sequence[str]) -> list[Profile]:
    from ampere.baselines.answers import strategy_of

    ways = dict.fromkeys(strategy_of(method) for method in methods)
    return [_known(model, options, *way) for way in ways if way != USUAL]


def _known(model: str | LoadedModel, options: Namespace, method: str, protocol: str) -> Profile:
    from ampere.api import stored_profile

    stored = stored_profile(None, setup_of(options), options.foreign, method, protocol, options.device)
    if stored is not None and stored.observations and name_of(model) in stored.spaces:
        return stored
    if options.no_profiling:
        raise ProfileError(
            f"this device has no profile of {name_of(model)} made with --method {method} --protocol {protocol}: "
            "leave out --no-profiling, or fewer --methods"
        )
    asked = Namespace(**{**vars(options), "method": method, "protocol": protocol, "watts_per_core": None})
    return run_profiling(model, asked).profile
