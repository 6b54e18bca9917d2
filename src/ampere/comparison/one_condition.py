"""Profiles of one device at one condition of it, whenever and in whichever runtime each was made.

    c    PyTorch's yardstick in the condition that a profile refers to        c1   in that of the device's first profile

    factor = c1 / c          a profile made while the device was 10 % slower is told 10 % cheaper

    u    what is not known of it, relative:        u^2 = repeats^2 + (0.3 log factor)^2

Two timings of a yardstick beside PyTorch's differ; how much, a runtime's description says. And a network need not share
all of a yardstick's slowdown (yardstick.py), so a large factor is less sure than a small one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import hypot, log

from ampere.estimation import Estimator
from ampere.profiles.profile import Profile
from ampere.worker.errors import WorkerError
from ampere.worker.runtimes import Description, description_of
from ampere.yardstick import BELIEF

UNKNOWN = Description("", (), "")


@dataclass(frozen=True)
class Moved:
    """A profile, told in the condition of the first of its device."""

    factor: float = 1.0
    stddev: float = 0.0  # relative, of its joules beside those of other profiles of the device
    yardstick_seconds: float | None = None  # of PyTorch, where it was timed
    told_as: str = ""  # the name of that first profile; "" of itself
    condition: float | None = None  # how much dearer a step is there; None where it stays as it is
    doubt: str = ""  # why it stays, though there is another one of its device


def at_one_condition(estimators: Sequence[Estimator], names: Sequence[str]) -> list[Moved]:
    """Devices of which there is one profile only stay as they are."""
    ids = [estimator.profile.device["id"] for estimator in estimators]
    firsts = [ids.index(name) for name in ids]
    moved = [_moved(e, estimators[first], names[first]) for e, first in zip(estimators, firsts, strict=True)]
    return [m if ids.count(name) > 1 else replace(m, stddev=0.0) for m, name in zip(moved, ids, strict=True)]


def common_yardstick(profile: Profile) -> tuple[float, float | None] | None:
    """Seconds and joules of PyTorch's, in the condition that the profile refers to; None where it was not timed."""
    if profile.protocol != "yardstick":
        return None
    if profile.common_yardstick_seconds is not None:
        return profile.common_yardstick_seconds, profile.common_yardstick_joules
    described = _described(profile)
    if described and described.torch_yardstick:
        return profile.yardstick_seconds, profile.yardstick_joules
    return None


def _described(profile: Profile) -> Description | None:
    """None of a worker that is not ours, whatever it calls its runtime, and of a runtime that is not installed here."""
    if "worker" in profile.device:
        return None
    try:
        return description_of(profile.setup.runtime)
    except WorkerError:
        return None


def _repeats(profile: Profile) -> float:
    """Nothing is timed beside PyTorch's own."""
    described = _described(profile) or UNKNOWN
    return 0.0 if described.torch_yardstick else described.yardstick_repeats


def _moved(estimator: Estimator, first: Estimator, name: str) -> Moved:
    here, there = common_yardstick(estimator.profile), common_yardstick(first.profile)
    seconds, repeats = here[0] if here else None, _repeats(estimator.profile)
    if estimator is first:
        return Moved(stddev=repeats if here else 0.0, yardstick_seconds=seconds)
    doubt = _doubt(estimator.profile, first.profile)
    if doubt or here is None or there is None:
        return Moved(yardstick_seconds=seconds, told_as=name, doubt=doubt)
    factor = there[1] / here[1] if there[1] and here[1] else there[0] / here[0]  # of joules where a counter read them
    return Moved(factor, hypot(repeats, BELIEF * log(factor)), seconds, name, factor * first.condition.factor)


def _doubt(profile: Profile, first: Profile) -> str:
    for lacking in (first, profile):
        yardstick = common_yardstick(lacking)
        if yardstick is None:
            return f"PyTorch's yardstick was not timed beside {lacking.setup.runtime}"
        if lacking.yardstick_joules is not None and yardstick[1] is None:
            return f"the joules of PyTorch's yardstick were not read beside {lacking.setup.runtime}"
    if profile.setup.threads != first.setup.threads:
        return "the yardsticks ran on different numbers of threads"
    versions = {str(p.device["torch"]) for p in (first, profile) if p.device.get("torch")}
    return f"the yardsticks are of PyTorch {' and '.join(sorted(versions))}" if len(versions) > 1 else ""
