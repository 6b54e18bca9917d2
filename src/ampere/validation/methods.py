"""Every method by its name: which campaign it learns from, what it is, and what it says of networks.

A name may end in `_wallclock`: the same method on measurements by the clock instead of beside the yardstick.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from ampere.baselines import METHODS
from ampere.baselines.method import evidence_of
from ampere.core import Network
from ampere.core.errors import UsageError
from ampere.estimation.estimate import Estimator, watts_of
from ampere.estimation.features import Array
from ampere.estimation.fitting import BY_LAYER, counted, drift_share_in, in_joules
from ampere.storage.profile import Profile

BY_THE_CLOCK = "_wallclock"
TITLES = {
    "additive": "Ampere: layers added up, physics and Gaussian process",
    "sequential": "the paper's: layers by subtraction, one GP a kind",
    **{name: method.title for name, method in METHODS.items()},
}


@dataclass(frozen=True)
class Answers:
    """Of one method about some networks: joules an iteration, and their deviation where the method tells it."""

    joules: Array
    stddevs: Array | None = None


def names(asked: str) -> tuple[str, ...]:
    """`all`, or names separated by commas."""
    if asked.strip() == "all":
        return (*TITLES, "sequential" + BY_THE_CLOCK)
    found = tuple(dict.fromkeys(name.strip() for name in asked.split(",") if name.strip()))
    for name in found or ("",):
        if name.removesuffix(BY_THE_CLOCK) not in TITLES:
            near = get_close_matches(name, TITLES, n=1)
            hint = f"did you mean {near[0]}?" if near else f"name some of {', '.join(TITLES)}, or all"
            raise UsageError(f"there is no method {name!r}: {hint}")
    return found


def title(name: str) -> str:
    plain = TITLES.get(name.removesuffix(BY_THE_CLOCK), "")
    return f"{plain}, by the clock" if name.endswith(BY_THE_CLOCK) else plain


def campaign_of(name: str) -> tuple[str, str]:
    """The campaign and the protocol that a method's profile must have been made with."""
    plain = name.removesuffix(BY_THE_CLOCK)
    campaign = METHODS[plain].campaign if plain in METHODS else plain
    return campaign, "yardstick" if plain == name else "wallclock"


def answers(
    profile: Profile, networks: Sequence[Network], allocator: str, yardstick_seconds: float
) -> dict[str, Answers]:
    """What every method that can learn from a profile says, in the condition in which a yardstick costs so much."""
    condition = 1.0
    if profile.protocol == "yardstick":
        sharing = drift_share_in(profile.observations, profile.yardstick_seconds).part
        condition = (yardstick_seconds / profile.yardstick_seconds) ** sharing
    found = {}
    if profile.method in BY_LAYER:
        found[profile.method] = _by_layer(profile, networks, allocator, condition)
    told, watts = (in_joules(profile), 1.0) if counted(profile.observations) else (profile, watts_of(profile))
    for name, method in METHODS.items():
        evidence = evidence_of(told, method.learns_from)
        if evidence is not None:
            found[name] = Answers(condition * watts * method.fit(evidence)(networks))
    suffix = "" if profile.protocol == "yardstick" else BY_THE_CLOCK
    return {name + suffix: answer for name, answer in found.items()}


def _by_layer(profile: Profile, networks: Sequence[Network], allocator: str, condition: float) -> Answers:
    estimator = Estimator(profile)
    estimates = [estimator.estimate(network, allocator, condition) for network in networks]
    return Answers(np.array([e.joules for e in estimates]), np.array([e.stddev for e in estimates]))
