"""How sure a ratio of two costs is.

r    a / b                      s    standard deviation of log r

P(a is cheaper) = Phi(-log r / s)         90 %: r exp(-+ 1.645 s)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import erf, exp, log, sqrt

from ampere.core import TrainingSetup
from ampere.core.setup import ALLOCATORS
from ampere.estimation.estimate import Z90, Estimator
from ampere.storage.profile import Profile

SURE = 0.9  # below this the two cannot be told apart


def chance_below_one(ratio: float, relative_stddev: float) -> float:
    if relative_stddev == 0:
        return 0.5 if ratio == 1 else float(ratio < 1)
    return 0.5 * (1 + erf(-log(ratio) / relative_stddev / sqrt(2)))


def interval90(ratio: float, relative_stddev: float) -> tuple[float, float]:
    apart = exp(Z90 * relative_stddev)
    return ratio / apart, ratio * apart


def in_percent(probability: float) -> str:
    """Never more certain than an estimate can be."""
    return "over 99.9 %" if probability > 0.999 else f"{100 * probability:.{1 if probability > 0.99 else 0}f} %"


# Where a profile was made, and how it is told from others: by its device, by its runtime where that is the same.


def device_of(profile: Profile) -> str:
    return str(profile.device.get("cpu", profile.device["id"]))


def on_one_device(profiles: Sequence[Profile]) -> bool:
    """Several of the same, that is. Two of one setup may be of two devices of one make, whose ids are the same."""
    ids, setups = {profile.device["id"] for profile in profiles}, {profile.setup for profile in profiles}
    return len(profiles) > 1 and len(ids) == 1 and len(setups) == len(profiles)


def names_of(profiles: Sequence[Profile], called: Sequence[str] = ()) -> list[str]:
    """`board`, `server`; on one device `torch`, `jax`; `torch adam` where more than the runtime differs."""
    setups = _apart([profile.setup for profile in profiles])
    if on_one_device(profiles):
        return setups
    return _told_apart(
        [", ".join(filter(None, (device_of(p), s))) for s, p in zip(setups, profiles, strict=True)], called
    )


def one_allocator(estimators: Sequence[Estimator], asked: str) -> str:
    """What was asked for where all can tell it, else what all can."""
    alike = (name for name in (asked, *ALLOCATORS) if len({e.allocator(name) for e in estimators}) == 1)
    return next(alike, asked)


def _apart(setups: Sequence[TrainingSetup]) -> list[str]:
    """What is not the same of all."""
    told = [{**s.to_json(), "threads": "1 thread" if s.threads == 1 else f"{s.threads} threads"} for s in setups]
    differing = [field for field in told[0] if len({record[field] for record in told}) > 1] if told else []
    return [" ".join(record[field] for field in differing) for record in told]


def _told_apart(names: Sequence[str], called: Sequence[str]) -> list[str]:
    """By what they are called where that differs, else by numbers."""
    marks = called if len(set(called)) == len(names) else [names[: i + 1].count(n) for i, n in enumerate(names)]
    return [f"{n} ({mark})" if names.count(n) > 1 else n for n, mark in zip(names, marks, strict=True)]
