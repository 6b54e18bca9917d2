"""This machine and its profiles on the screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ampere.cli.console import headline, print_facts
from ampere.core import Meter, TrainingSetup, units

from .meter import in_words


def show(found: Mapping[str, Any]) -> None:
    device = found["device"]
    cores = f"{device['cores']} core{'s' if device['cores'] > 1 else ''}"
    headline(f"{'this device: ' if 'torch' in device else ''}{device['cpu']}, {cores}")
    print_facts(
        [
            *_machine(device),
            *_meters(found["meters"], found["counters"]),
            ("without hardware", ", ".join(found["simulated"])),
        ]
    )
    print()
    profiles = found["profiles"]
    headline(f"{len(profiles)} profile{'' if len(profiles) == 1 else 's'} stored here")
    for profile in profiles:
        print_facts(_profile(profile))
    if not profiles:
        print("make one with: ampere profile lenet5")


def _machine(device: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if "torch" in device:
        program = f"Python {device['python']}" if device.get("python") else device.get("worker", "a worker of its own")
        yield "system", f"{device['system']} {device['release'] or ''} on {device['machine']}, {program}"
        there = ", ".join(f"{name} {version}" for name, version in device["runtimes"].items())
        yield "runtimes", there or "none: pip install 'ampere-energy[torch]' to train here"
    yield "known as", str(device["id"])


def _meters(meters: list[Mapping[str, Any]], counters: list[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for meter in meters:
        yield "meter", in_words(Meter(**meter))
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
        return f"{needs}; --check puts it to the test"
    if found["problem"]:
        return f"{counter['scope']}; rejected: {found['problem']}"
    watts = f"{found['watts_idle']:.3g} W at rest, {found['watts_load']:.3g} W under load"
    return f"{needs}; {watts}, noise {found['noise_watts']:.2g} W{_steps(found)}"


def _steps(found: Mapping[str, Any]) -> str:
    if found["update_seconds"] is None:
        return ""
    step = f"{found['resolution']:.2g} {found['resolution_unit']}"
    return f"; it moves every {units.seconds(found['update_seconds'])}, by {step} or more"


def _profile(profile: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "file", profile["path"]
    if profile["problem"]:
        yield "problem", profile["problem"]
        return
    yield "knows", f"{', '.join(profile['spaces']) or 'nothing yet'}, trained with {_setup(profile['setup'])}"
    spread = "" if profile["spread"] is None else f"; rounds typically differ by {units.percent(profile['spread'])}"
    seconds = units.seconds(profile["profiling_seconds"])
    yield "from", f"{profile['measurements']} measurements in {seconds}{spread}"
    if not profile["of_this_device"]:
        yield "", f"of another device: it is used only with {_asked_with(profile)}"


def _asked_with(profile: Mapping[str, Any]) -> str:
    sort, _, name = str(profile["device_id"]).partition("-")
    return f"--device simulated:{name}" if sort == "simulated" else "--profile and --foreign"


def _setup(record: Mapping[str, Any]) -> str:
    setup = TrainingSetup.from_json(dict(record))
    threads = f"{setup.threads} thread{'s' if setup.threads > 1 else ''}"
    return f"{setup.runtime}, {setup.optimizer}, {setup.dtype}, {threads}"
