"""Where a profile was made, and how it is told from others: by its device, by its runtime where that is the same."""

from __future__ import annotations

from collections.abc import Sequence

from ampere.estimation import Estimator
from ampere.network import TrainingSetup
from ampere.network.setup import ALLOCATORS
from ampere.profiles.profile import Profile


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
