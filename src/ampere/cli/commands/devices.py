"""`ampere devices`: this machine, its meters, the profiles stored here. Without torch, without numpy."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from ampere.cli import options as shared
from ampere.cli.console import notice, print_json
from ampere.core.errors import UsageError


def add_arguments(parser: ArgumentParser) -> None:
    shared.describe(
        parser,
        "What this machine is, which meters it has, and what the profiles stored here know. Profiles are stored in "
        "the user's data folder (default), or in AMPERE_HOME if that is set.",
        "ampere devices",
        "ampere devices --json",
        "ampere devices --check                           load and rest in turn: which meters can be trusted",
        "ampere devices --device ssh://me@board           another machine",
        "ampere devices --device simulated:tx2            one that is not there",
        "AMPERE_HOME=/media/stick ampere devices          profiles kept elsewhere",
    )
    shared.add_device(parser)
    parser.add_argument(
        "--check", action="store_true", help="put a load on, and reject meters that do not rise (a battery takes 40 s)"
    )
    shared.add_meter_choice(parser)
    shared.add_meter(parser)
    shared.add_output(parser)


def run(options: Namespace) -> None:
    from ampere.devices import describe
    from ampere.devices.opening import counters_of, has_meters
    from ampere.devices.simulated import PARTS
    from ampere.meters import DEFAULT_WATTS_PER_CORE

    shared.use_meter(options)
    if options.check and not has_meters(options.device):
        raise UsageError(f"--check puts a load on a machine, and {options.device} is none: leave it out")
    if options.check:
        notice("checking its meters, load and rest in turn ...", options.quiet)
    here = describe(options.device, options.watts_per_core or DEFAULT_WATTS_PER_CORE)
    found = {
        "device": here.identity,
        "meters": [here.meter.to_json()],
        "counters": counters_of(options.device, options.check),
        "simulated": {f"simulated:{name}": part.title for name, part in PARTS.items()},
        "profiles": stored_profiles(here.identity["id"]),
    }
    if options.json:
        print_json(found)
    else:
        from ampere.cli.views.devices import show

        show(found)


def stored_profiles(device_id: str) -> list[dict[str, Any]]:
    from ampere.storage.places import home

    paths = sorted((home() / "profiles").glob("*.json"))
    return [_summary(path, device_id) for path in paths]


def _summary(path: Path, device_id: str) -> dict[str, Any]:
    """One damaged file must not hide the others."""
    from ampere.core.errors import ProfileError
    from ampere.storage.profile import Profile

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
