"""`ampere devices`: this machine, its meters, the profiles stored here. Without torch, without numpy."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from .. import options as shared
from ..screen import print_json


def add_arguments(parser: ArgumentParser) -> None:
    shared.describe(
        parser,
        "What this machine is, which meters it has, and what the profiles stored here know. Profiles are stored in "
        "the user's data folder (default), or in AMPERE_HOME if that is set.",
        "ampere devices",
        "ampere devices --json",
        "ampere devices --device ssh://me@board           another machine",
        "ampere devices --device simulated:tx2            one that is not there",
        "AMPERE_HOME=/media/stick ampere devices          profiles kept elsewhere",
    )
    shared.add_device(parser)
    shared.add_meter(parser)
    shared.add_output(parser)


def run(options: Namespace) -> None:
    from ampere.devices import describe
    from ampere.devices.simulated import PARTS
    from ampere.worker.meters import DEFAULT_WATTS_PER_CORE

    here = describe(options.device, options.watts_per_core or DEFAULT_WATTS_PER_CORE)
    found = {
        "device": here.identity,
        "meters": [here.meter.to_json()],
        "simulated": {f"simulated:{name}": part.title for name, part in PARTS.items()},
        "profiles": stored_profiles(here.identity["id"]),
    }
    if options.json:
        print_json(found)
    else:
        from ..views.devices import show

        show(found)


def stored_profiles(device_id: str) -> list[dict[str, Any]]:
    from ampere.profiles.places import home

    paths = sorted((home() / "profiles").glob("*.json"))
    return [_summary(path, device_id) for path in paths]


def _summary(path: Path, device_id: str) -> dict[str, Any]:
    """One damaged file must not hide the others."""
    from ampere.errors import ProfileError
    from ampere.profiles.profile import Profile

    try:
        profile = Profile.load(path)
    except ProfileError as error:
        return {"path": str(path), "problem": str(error)}
    spreads = sorted(s for o in profile.observations if (s := o.measurement.spread) is not None)
    return {
        "path": str(path),
        "problem": None,
        "device_id": profile.device["id"],
        "of_this_device": profile.device["id"] == device_id,
        "setup": profile.setup.to_json(),
        "spaces": list(profile.spaces),
        "measurements": len(profile.observations),
        "profiling_seconds": profile.profiling_seconds,
        "spread": spreads[len(spreads) // 2] if spreads else None,
        "meter": profile.meter.to_json(),
    }
