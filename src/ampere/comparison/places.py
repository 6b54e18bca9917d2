"""Where a profile was made, and how it is told from others: by its device, by its runtime where that is the same."""

from __future__ import annotations

from collections.abc import Sequence

from ampere.network import TrainingSetup
from ampere.profiles.profile import Profile


def device_of(profile: Profile) -> str:
    return str(profile.device.get("cpu", profile.device["id"]))


def on_one_device(profiles: Sequence[Profile]) -> bool:
    """Several of the same, that is."""
    return len(profiles) > 1 and len({profile.device["id"] for profile in profiles}) == 1


def names_of(profiles: Sequence[Profile]) -> list[str]:
    """`board`, `server`; on one device `torch`, `jax`; `torch adam` where more than the runtime differs."""
    setups = _apart([profile.setup for profile in profiles])
    if on_one_device(profiles):
        return _numbered([s or p.setup.runtime for s, p in zip(setups, profiles, strict=True)])
    return _numbered([", ".join(filter(None, (device_of(p), s))) for s, p in zip(setups, profiles, strict=True)])


def _apart(setups: Sequence[TrainingSetup]) -> list[str]:
    """What is not the same of all."""
    told = [{**s.to_json(), "threads": "1 thread" if s.threads == 1 else f"{s.threads} threads"} for s in setups]
    differing = [field for field in told[0] if len({record[field] for record in told}) > 1] if told else []
    return [" ".join(record[field] for field in differing) for record in told]


def _numbered(names: Sequence[str]) -> list[str]:
    return [f"{n} ({names[: i + 1].count(n)})" if names.count(n) > 1 else n for i, n in enumerate(names)]
