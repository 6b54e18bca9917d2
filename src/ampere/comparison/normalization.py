"""Profiles of one device brought to one condition of it, whenever and with whichever runtime each was made.

    c    PyTorch's yardstick (the reference step) in the condition that a profile refers to
    c1   the same in the reference profile: PyTorch's own, else that of the most repeatable yardstick

    factor = c1 / c          a profile made while the device was 10 % slower is expressed 10 % cheaper

    u    relative uncertainty of the factor:        u^2 = repeats^2 + unrest^2 + (0.3 log factor)^2

Seconds have the factor of seconds, and joules that of joules where a counter read them. `repeats` is how much two
timings of a yardstick paired with PyTorch's differ; the runtime's description gives it. `unrest` is how much the
yardstick varied while the profile was made. The last term is there because a network need not share all of a
yardstick's slowdown, so a large factor is less certain than a small one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import hypot, log
from statistics import stdev
from typing import Any, NamedTuple

from ampere.core import Network, TrainingSetup
from ampere.core.errors import WorkerError
from ampere.core.setup import ALLOCATORS
from ampere.core.units import counted
from ampere.estimation.estimate import Estimate
from ampere.estimation.estimator import Estimator
from ampere.estimation.normalization import PRIOR_STDDEV, costs_of
from ampere.runtimes import Description, description_of
from ampere.storage.profile import Profile

UNKNOWN = Description("", (), "")
UNKNOWN_CONDITION = 0.1  # relative: raw CPU time drifts by so much from day to day on a shared machine (decision 5)
BY_TIME_ALONE = (
    1.0  # instead of PRIOR_STDDEV: a lower clock takes longer at less power, which may make up for all of it
)
SEVERAL = "profiles with the same setup may be of several devices of one make: leave out all but one of them"


@dataclass(frozen=True)
class Normalized:
    """How a profile is expressed in the condition of another profile of its device."""

    factor: float = 1.0  # of joules
    stddev: float = 0.0  # relative, of its joules compared with those of other profiles of the device
    yardstick_seconds: float | None = None  # of PyTorch's yardstick, where it was timed
    expressed_as: str = ""  # the name of the other profile; "" where this one is left unchanged
    condition: float | None = None  # factor on the cost of a step there; None where it is left unchanged
    caveat: str = ""  # why it is left unchanged though there are others of its device, and what would help
    seconds_factor: float = 1.0

    def estimate(self, estimator: Estimator, network: Network, allocator: str) -> Estimate:
        estimate = estimator.estimate(network, allocator, self.condition)
        return replace(estimate, seconds=estimate.seconds * self.seconds_factor / self.factor)

    def to_json(self) -> dict[str, Any]:
        return {
            "factor": self.factor,
            "seconds_factor": self.seconds_factor,
            "factor_stddev": self.stddev,
            "common_yardstick_seconds": self.yardstick_seconds,
            "expressed_as": self.expressed_as or None,
            "caveat": self.caveat or None,
        }


class _Named(NamedTuple):
    estimator: Estimator
    name: str


def normalize(estimators: Sequence[Estimator], names: Sequence[str]) -> list[Normalized]:
    """One record for each profile. Profiles of a device that has one setup only are left unchanged."""
    named = [_Named(*pair) for pair in zip(estimators, names, strict=True)]
    return [
        _normalized(estimator, [n for n in named if _id(n.estimator) == _id(estimator)]) for estimator in estimators
    ]


def _id(estimator: Estimator) -> str:
    return str(estimator.profile.device["id"])


def _normalized(estimator: Estimator, same_device: Sequence[_Named]) -> Normalized:
    profile, setups = estimator.profile, {other.estimator.profile.setup for other in same_device}
    here, repeats = common_yardstick(profile), hypot(_repeats(profile), _unrest(profile))
    unchanged = Normalized(yardstick_seconds=here[0] if here else None)
    if len(setups) == 1:  # alone, or several devices of one make: then their difference is what is compared
        return unchanged
    uncertain = replace(unchanged, stddev=hypot(repeats, UNKNOWN_CONDITION))
    if len(setups) < len(same_device):
        return replace(uncertain, caveat=SEVERAL)
    if here is None:
        return replace(uncertain, caveat=_why_no_yardstick(profile))
    reference, seconds, joules, name = _reference(same_device)
    if reference is estimator:
        return replace(unchanged, stddev=repeats)
    if difference := _difference(profile, reference.profile):
        return replace(uncertain, caveat=difference)
    by_time = seconds / here[0]
    by_counter = joules / here[1] if joules and here[1] else None
    modelled = profile.yardstick_joules is None and reference.profile.yardstick_joules is None
    factor, belief = by_counter or by_time, PRIOR_STDDEV if by_counter or modelled else BY_TIME_ALONE
    stddev = hypot(repeats, belief * log(factor))
    return Normalized(factor, stddev, here[0], name, factor * reference.condition.factor, seconds_factor=by_time)


def common_yardstick(profile: Profile) -> tuple[float, float | None] | None:
    """Seconds and joules of PyTorch's yardstick in the profile's condition; None where it was not timed."""
    if profile.timing != "yardstick":
        return None
    if profile.common_yardstick_seconds is not None:
        return profile.common_yardstick_seconds, profile.common_yardstick_joules
    description = _description(profile)
    if description and description.torch_yardstick:
        return profile.yardstick_seconds, profile.yardstick_joules
    return None


def _description(profile: Profile) -> Description | None:
    """None for a worker that is not Ampere's, whatever it calls its runtime, and where the runtime is not installed."""
    if "worker" in profile.device:
        return None
    try:
        return description_of(profile.setup.runtime)
    except WorkerError:
        return None


def _repeats(profile: Profile) -> float:
    """Relative difference of two timings of the runtime's yardstick; 0 where it is PyTorch's own."""
    description = _description(profile) or UNKNOWN
    return 0.0 if description.torch_yardstick else description.yardstick_repeats


def _unrest(profile: Profile) -> float:
    """Relative spread of the yardstick in plain loops: elsewhere it varies with the network before it."""
    plain = [cost.yardsticks for cost in costs_of(profile) if cost.allocator == "system"]
    steps = [log(seconds) for round_by_round in plain for seconds in round_by_round]
    return stdev(steps) if len(steps) > 1 else 0.0


def _reference(same_device: Sequence[_Named]) -> tuple[Estimator, float, float | None, str]:
    """The profile with the most repeatable yardstick, and of those the fastest: the same one in any order."""
    timed = [(e, *yardstick, name) for e, name in same_device if (yardstick := common_yardstick(e.profile))]
    return min(timed, key=lambda one: (_repeats(one[0].profile), one[1]))


def _why_no_yardstick(profile: Profile) -> str:
    runtime = profile.setup.runtime
    if profile.timing != "yardstick":
        return f"{runtime} was profiled without a yardstick: profile it with --timing yardstick"
    if "worker" in profile.device:
        return f"PyTorch's yardstick cannot be timed with the worker of {runtime}: profile all on one day"
    return f"PyTorch's yardstick was not timed with {runtime}: profile it again, with PyTorch there and not over tcp"


def _difference(profile: Profile, reference: Profile) -> str:
    """Why the yardsticks of two profiles are not the same step, and what would help; "" where they are."""
    threads = [reference.setup.threads, profile.setup.threads]
    if threads[0] != threads[1]:
        return f"the yardsticks ran on {min(threads)} and {max(threads)} threads: profile both on one day"
    versions = {str(p.device["torch"]) for p in (reference, profile) if p.device.get("torch")}
    if len(versions) > 1:
        return f"the yardsticks are of PyTorch {' and '.join(sorted(versions))}: profile both again with one of them"
    return ""


# Names of profiles in a comparison: the device, or what differs in the setup where the device is the same.


def device_of(profile: Profile) -> str:
    return profile.device_name


def on_one_device(profiles: Sequence[Profile]) -> bool:
    """Whether several profiles are of one device. Two of one setup may be of two devices of one make, with one id."""
    ids, setups = {profile.device["id"] for profile in profiles}, {profile.setup for profile in profiles}
    return len(profiles) > 1 and len(ids) == 1 and len(setups) == len(profiles)


def names_of(profiles: Sequence[Profile], labels: Sequence[str] = ()) -> list[str]:
    """`board`, `server`; on one device `torch`, `jax`; `torch adam` where more than the runtime differs."""
    setups = _differences([profile.setup for profile in profiles])
    if on_one_device(profiles):
        return setups
    names = [", ".join(filter(None, (device_of(p), s))) for s, p in zip(setups, profiles, strict=True)]
    return unique_names(names, labels)


def unique_names(names: Sequence[str], labels: Sequence[str] = ()) -> list[str]:
    """Equal names are followed by their labels where those differ, else by numbers."""
    marks = labels if len(set(labels)) == len(names) else [names[: i + 1].count(n) for i, n in enumerate(names)]
    return [f"{n} ({mark})" if names.count(n) > 1 else n for n, mark in zip(names, marks, strict=True)]


def common_allocator(estimators: Sequence[Estimator], wanted: str) -> str:
    """The wanted allocator where all profiles have it, else one that all have."""
    alike = (name for name in (wanted, *ALLOCATORS) if len({e.allocator(name) for e in estimators}) == 1)
    return next(alike, wanted)


def _differences(setups: Sequence[TrainingSetup]) -> list[str]:
    """The fields of each setup that are not the same in all of them, in words."""
    records = [{**s.to_json(), "threads": counted(s.threads, "thread")} for s in setups]
    differing = [field for field in records[0] if len({record[field] for record in records}) > 1] if records else []
    return [" ".join(str(record[field]) for field in differing) for record in records]
