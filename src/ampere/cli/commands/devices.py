"""`ampere devices`: this machine, its meters, and the profiles stored here. Needs neither torch nor numpy."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ampere.cli import arguments
from ampere.cli.console import headline, notice, print_facts, print_json
from ampere.core import units
from ampere.core.errors import UsageError


def add_arguments(parser: ArgumentParser) -> None:
    arguments.describe(
        parser,
        "What this machine is, which meters it has, and what the profiles stored here cover. Profiles are stored in "
        "the user's data folder (default), or in AMPERE_HOME if that is set.",
        "ampere devices",
        "ampere devices --json",
        "ampere devices --check                    which meters can be trusted",
        "ampere devices --device ssh://me@board    another machine",
        "ampere devices --device simulated:tx2     one that is not there",
        "AMPERE_HOME=/media/stick ampere devices   profiles kept elsewhere",
    )
    arguments.add_device(parser)
    parser.add_argument(
        "--check",
        action="store_true",
        help="put a load on the machine, and reject meters that do not rise (a battery takes 40 s)",
    )
    arguments.add_meter_choice(parser)
    arguments.add_meter(parser)
    arguments.add_output(parser)


def run(options: Namespace) -> None:
    from ampere.devices.core_watts import of_profile
    from ampere.devices.simulated import PARTS

    with arguments.open_device(options, options.watts_per_core) as device:
        if options.check and not device.has_meters:
            raise UsageError(f"--check puts a load on a machine, which {options.device} is not: leave it out")
        if options.check:
            notice("checking the meters under load and at rest, in turns ...", options.quiet)
        cores = None if options.watts_per_core else of_profile(device.identity, device.meter)
        found = {
            "device": device.identity,
            "threads": device.described.threads,
            "meters": [(cores.meter(device.meter) if cores else device.meter).to_json()],
            "counters": device.counters(options.check),
            "simulated": {f"simulated:{name}": part.title for name, part in PARTS.items()},
            "profiles": stored_profiles(device.identity),
        }
    if options.json:
        print_json(found)
    else:
        show(found)


def stored_profiles(device: Mapping[str, Any]) -> list[dict[str, Any]]:
    from ampere.storage.places import home

    return [_summary(path, device) for path in sorted((home() / "profiles").glob("*.json"))]


def _summary(path: Path, device: Mapping[str, Any]) -> dict[str, Any]:
    """One damaged file must not hide the others."""
    from ampere.core.errors import ProfileError
    from ampere.estimation.normalization import costs_of
    from ampere.storage.profile import Profile, same_device

    try:
        profile = Profile.load(path)
    except ProfileError as error:
        return {"path": str(path), "problem": str(error)}
    spreads = sorted(s for cost in costs_of(profile) if (s := cost.spread) is not None)
    return {
        "path": str(path),
        "problem": None,
        "device_id": profile.device["id"],
        "of_this_device": same_device(profile.device, device),
        "setup": profile.setup.to_json(),
        "threads": list(profile.threads),
        "spaces": list(profile.spaces),
        "measurements": len(profile.observations),
        "profiling_seconds": profile.profiling_seconds,
        "spread": spreads[len(spreads) // 2] if spreads else None,
        "meter": profile.meter.to_json(),
    }


def show(found: Mapping[str, Any]) -> None:

    device, profiles = found["device"], found["profiles"]
    here = "this device: " if "torch" in device else ""
    headline(f"{here}{device['cpu']}, {units.counted(device['cores'], 'core')}")
    print_facts(
        [
            *_machine(device),
            *([("accelerator", device["accelerator"])] if "accelerator" in device else []),
            ("threads", f"{found['threads']}, as PyTorch uses where nobody says otherwise; --threads changes it"),
            *_meters(found["meters"], found["counters"]),
            ("simulated", ", ".join(found["simulated"])),
        ]
    )
    print()
    headline(f"{units.counted(len(profiles), 'profile')} stored here")
    for profile in profiles:
        print_facts(_profile(profile))
    if not profiles:
        print("make one with: ampere profile lenet5")


def _machine(device: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if "torch" in device:
        program = f"Python {device['python']}" if device.get("python") else device.get("worker", "a worker of its own")
        yield "system", f"{device['system']} {device['release'] or ''} on {device['machine']}, {program}"
        runtimes = ", ".join(f"{name} {version}" for name, version in device["runtimes"].items())
        yield "runtimes", runtimes or "none: pip install 'ampere-energy[torch]' to train here"
    yield "id", str(device["id"])


def _meters(meters: list[Mapping[str, Any]], counters: list[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    from ampere.cli.wording import meter_line
    from ampere.core import Meter

    for meter in meters:
        yield "meter", meter_line(Meter(**meter))
    if not any(meter["measured"] or meter["simulated"] for meter in meters):
        none = "no energy counter is read" if counters else "there is no energy counter that Ampere can read"
        yield "", f"{none}; time is measured, joules are computed from it"
    for counter in counters:
        yield "counter", f"{counter['name']}: {_counter(counter)}"


def _counter(counter: Mapping[str, Any]) -> str:
    if counter["problem"]:
        return f"cannot be used: {counter['problem']}"
    needs = f"{counter['scope']}; windows of {units.seconds(counter['window_seconds'])}"
    if counter["name"].startswith("adb:"):
        return f"{needs}; for a worker on it: --device ssh://... --meter {counter['name']}"
    found = counter["check"]
    if found is None:
        return f"{needs}; --check tests it under load"
    if found["problem"]:
        return f"{counter['scope']}; rejected: {found['problem']}"
    watts = f"{found['watts_idle']:.3g} W at rest, {found['watts_load']:.3g} W under load"
    return f"{needs}; {watts}, noise {found['noise_watts']:.2g} W{_steps(found)}"


def _steps(found: Mapping[str, Any]) -> str:
    if found["update_seconds"] is None:
        return ""
    step = f"{found['resolution']:.2g} {found['resolution_unit']}"
    return f"; it changes every {units.seconds(found['update_seconds'])}, by {step} or more"


def _profile(profile: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    from ampere.cli.wording import setup_line
    from ampere.core import TrainingSetup

    yield "file", profile["path"]
    if profile["problem"]:
        yield "problem", profile["problem"]
        return
    setup = setup_line(TrainingSetup.from_json(dict(profile["setup"])))
    also = [str(threads) for threads in profile["threads"] if threads != profile["setup"]["threads"]]
    yield (
        "covers",
        f"{', '.join(profile['spaces']) or 'nothing yet'}; {setup}"
        + (f"; and on {', '.join(also)} threads" if also else ""),
    )
    spread = "" if profile["spread"] is None else f"; rounds typically differ by {units.percent(profile['spread'])}"
    seconds = units.seconds(profile["profiling_seconds"])
    yield "from", f"{units.counted(profile['measurements'], 'measurement')} in {seconds}{spread}"
    if not profile["of_this_device"]:
        yield "", f"of another device: it is used only with {_option_for(profile)}"


def _option_for(profile: Mapping[str, Any]) -> str:
    kind, _, name = str(profile["device_id"]).partition("-")
    return f"--device simulated:{name}" if kind == "simulated" else "--profile and --allow-other-device"
