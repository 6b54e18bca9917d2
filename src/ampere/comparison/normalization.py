"""Profiles of one device at one condition of it, whenever and in whichever runtime each was made.

    c    PyTorch's yardstick in the condition that a profile refers to
    c1   in that of the profile that tells it best: PyTorch's own, else the one timed beside the steadiest runtime

    factor = c1 / c          a profile made while the device was 10 % slower is told 10 % cheaper

    u    what is not known of it, relative:        u^2 = repeats^2 + restless^2 + (0.3 log factor)^2

Seconds have the factor of seconds, and joules that of joules where a counter read them. Two timings of a yardstick
beside PyTorch's differ; how much, a runtime's description says. More on a restless machine: by how much the yardstick
varied while the profile was made. And a network need not share all of a yardstick's slowdown (yardstick.py), so a
large factor is less sure than a small one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import hypot, log
from statistics import stdev
from typing import Any

from ampere.core import Network
from ampere.core.errors import WorkerError
from ampere.estimation.estimate import Estimate, Estimator
from ampere.estimation.normalization import BELIEF
from ampere.runtimes import Description, description_of
from ampere.storage.profile import Profile

UNKNOWN = Description("", (), "")
UNKNOWN_CONDITION = 0.1  # relative: raw CPU time drifts by so much from day to day on a shared machine (decision 5)
BY_TIME_ALONE = 1.0  # in the place of BELIEF: a lower clock takes longer at less power, which may make up for all of it
SEVERAL = "profiles with the same setup may be of several devices of one make: leave out all but one of them"


@dataclass(frozen=True)
class Normalized:
    """A profile, told in the condition that another one of its device refers to."""

    factor: float = 1.0  # of joules
    stddev: float = 0.0  # relative, of its joules beside those of other profiles of the device
    yardstick_seconds: float | None = None  # of PyTorch, where it was timed
    told_as: str = ""  # the name of that other profile; "" where it stays as it is
    condition: float | None = None  # how much dearer a step is there; None where it stays as it is
    doubt: str = ""  # why it stays though there are others of its device, and what would help
    seconds_factor: float = 1.0

    def estimate(self, estimator: Estimator, network: Network, allocator: str) -> Estimate:
        told = estimator.estimate(network, allocator, self.condition)
        return replace(told, seconds=told.seconds * self.seconds_factor / self.factor)

    def to_json(self) -> dict[str, Any]:
        return {
            "factor": self.factor,
            "seconds_factor": self.seconds_factor,
            "factor_stddev": self.stddev,
            "common_yardstick_seconds": self.yardstick_seconds,
            "told_as": self.told_as or None,
            "doubt": self.doubt or None,
        }


def at_one_condition(estimators: Sequence[Estimator], names: Sequence[str]) -> list[Normalized]:
    """Where a device has profiles of several setups; what has one setup only stays as it is."""
    named = list(zip(estimators, names, strict=True))
    ids = [estimator.profile.device["id"] for estimator in estimators]
    return [
        _moved(estimator, [other for other, its in zip(named, ids, strict=True) if its == own])
        for estimator, own in zip(estimators, ids, strict=True)
    ]


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


def _restless(profile: Profile) -> float:
    """In plain loops, where the yardstick settles first: elsewhere it varies with the network before it."""
    plain = [o.measurement.yardsticks for o in profile.observations if o.measurement.allocator == "system"]
    steps = [log(seconds) for round_by_round in plain for seconds in round_by_round]
    return stdev(steps) if len(steps) > 1 else 0.0


def _moved(estimator: Estimator, there: Sequence[tuple[Estimator, str]]) -> Normalized:
    """`there` are all of its device with their names, itself among them."""
    profile, setups = estimator.profile, {other.profile.setup for other, _ in there}
    here, repeats = common_yardstick(profile), hypot(_repeats(profile), _restless(profile))
    as_it_is = Normalized(yardstick_seconds=here[0] if here else None)
    if len(setups) == 1:  # alone, or several devices of one make: then their difference is what is asked for
        return as_it_is
    doubted = replace(as_it_is, stddev=hypot(repeats, UNKNOWN_CONDITION))
    if len(setups) < len(there):
        return replace(doubted, doubt=SEVERAL)
    if here is None:
        return replace(doubted, doubt=_lacking(profile))
    best, seconds, joules, name = _told_best(there)
    if best is estimator:
        return replace(as_it_is, stddev=repeats)
    if differing := _differing(profile, best.profile):
        return replace(doubted, doubt=differing)
    by_time = seconds / here[0]
    read = joules / here[1] if joules and here[1] else None
    modelled = profile.yardstick_joules is None and best.profile.yardstick_joules is None
    factor, part = read or by_time, BELIEF if read or modelled else BY_TIME_ALONE
    stddev = hypot(repeats, part * log(factor))
    return Normalized(factor, stddev, here[0], name, factor * best.condition.factor, seconds_factor=by_time)


def _told_best(there: Sequence[tuple[Estimator, str]]) -> tuple[Estimator, float, float | None, str]:
    """The quickest of those that are alike: whichever comes first, the same one."""
    known = [(e, *yardstick, name) for e, name in there if (yardstick := common_yardstick(e.profile))]
    return min(known, key=lambda one: (_repeats(one[0].profile), one[1]))


def _lacking(profile: Profile) -> str:
    """Why there is no common yardstick, and what would help."""
    runtime = profile.setup.runtime
    if profile.protocol != "yardstick":
        return f"{runtime} was profiled without a yardstick: profile it with --protocol yardstick"
    if "worker" in profile.device:
        return f"PyTorch's yardstick cannot be timed beside the worker of {runtime}: profile all on one day"
    return f"PyTorch's yardstick was not timed beside {runtime}: profile it again, with PyTorch there and not over tcp"


def _differing(profile: Profile, best: Profile) -> str:
    """Why the yardsticks of two profiles are not the same step, and what would help."""
    threads = [best.setup.threads, profile.setup.threads]
    if threads[0] != threads[1]:
        return f"the yardsticks ran on {min(threads)} and {max(threads)} threads: profile both on one day"
    versions = {str(p.device["torch"]) for p in (best, profile) if p.device.get("torch")}
    if len(versions) > 1:
        return f"the yardsticks are of PyTorch {' and '.join(sorted(versions))}: profile both anew with one of them"
    return ""
