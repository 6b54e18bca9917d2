"""Every method by its name, Ampere's own included: what it is, which profile it needs, what it estimates.

A name may end in `_wallclock`: the same method on measurements by the clock instead of paired with the yardstick.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from ampere.baselines import METHODS
from ampere.core import Network
from ampere.core.errors import RuntimeMissingError, UsageError
from ampere.estimation.estimator import Estimator, watts_of
from ampere.estimation.features import Array
from ampere.estimation.fitting import BY_LAYER, counted, drift_share_in
from ampere.estimation.normalization import costs_of, reference_of
from ampere.storage.profile import Profile

from .method import evidence_of

BY_THE_CLOCK = "_wallclock"
IN_LOOPS = "sequential"  # the strategy whose networks are trained in loops between yardsticks that settle
TITLES = {
    "additive": "Ampere: layers added up, physics and Gaussian process",
    "sequential": "the paper's: layers by subtraction, one GP per kind",
    **{name: method.title for name, method in METHODS.items()},
}


@dataclass(frozen=True)
class Answers:
    """One method's estimates of some networks: joules per iteration, and standard deviations where it has them."""

    joules: Array
    stddevs: Array | None = None


def unavailable(slow: bool = False) -> dict[str, str]:
    """The methods that cannot run on this machine, each with the reason and what to do; `slow` ones too if asked."""
    every = {name: method for name, method in METHODS.items() if slow or not method.slow}
    return {name: reason for name, method in every.items() if (reason := method.unavailable())}


def names(methods: str) -> tuple[str, ...]:
    """The methods named by a list separated by commas, or by `all`: every one that can run here."""
    missing = unavailable(slow=True)
    if methods.strip() == "all":
        return (*(name for name in TITLES if name not in missing), "sequential" + BY_THE_CLOCK)
    found = tuple(dict.fromkeys(name.strip() for name in methods.split(",") if name.strip()))
    for name in found or ("",):
        plain = name.removesuffix(BY_THE_CLOCK)
        if plain not in TITLES:
            near = get_close_matches(name, TITLES, n=1)
            hint = f"did you mean {near[0]}?" if near else f"name some of {', '.join(TITLES)}, or all"
            raise UsageError(f"there is no method {name!r}: {hint}")
        if plain in missing:
            raise RuntimeMissingError(f"the method {name} cannot run: {missing[plain]}")
    return found


def title(name: str) -> str:
    plain = TITLES.get(name.removesuffix(BY_THE_CLOCK), "")
    return f"{plain}, by the clock" if name.endswith(BY_THE_CLOCK) else plain


def strategy_of(name: str) -> tuple[str, str]:
    """The profiling strategy and the timing that a method's profile must have been made with."""
    plain = name.removesuffix(BY_THE_CLOCK)
    strategy = METHODS[plain].strategy if plain in METHODS else plain
    return strategy, "yardstick" if plain == name else "wallclock"


def measured_for(method: str, paired: float, in_loops: float | None) -> float:
    """What a method is held against: a network measured as the method's own profile was, where it was so measured."""
    return paired if in_loops is None or strategy_of(method)[0] != IN_LOOPS else in_loops


def answers(
    profile: Profile,
    networks: Sequence[Network],
    allocator: str,
    yardstick_seconds: float,
    named: Sequence[str] = (),
) -> dict[str, Answers]:
    """The estimates of every method that can learn from a profile, at the speed at which a yardstick costs so much.

    Methods that are `unavailable` here are left out, and slow ones that are not `named`.
    """
    costs, condition = costs_of(profile), 1.0
    if profile.timing == "yardstick":
        share = drift_share_in(costs, reference_of(profile)).part
        condition = (yardstick_seconds / profile.yardstick_seconds) ** share
    found = {}
    if profile.method in BY_LAYER:
        found[profile.method] = _by_layer(profile, networks, allocator, condition)
    in_joules = counted(costs)
    watts = 1.0 if in_joules else watts_of(profile)
    suffix = "" if profile.timing == "yardstick" else BY_THE_CLOCK
    for name, method in METHODS.items():
        if method.slow and name + suffix not in named:
            continue
        evidence = evidence_of(profile, method.learns_from, in_joules)
        if evidence is not None and not method.unavailable():
            found[name] = Answers(condition * watts * method.fit(evidence)(networks))
    return {name + suffix: answer for name, answer in found.items()}


def _by_layer(profile: Profile, networks: Sequence[Network], allocator: str, condition: float) -> Answers:
    estimator = Estimator(profile)
    estimates = [estimator.estimate(network, allocator, condition) for network in networks]
    return Answers(np.array([e.joules for e in estimates]), np.array([e.stddev for e in estimates]))
