"""From a device's name to the device: `local`, `ssh://HOST`, `tcp://HOST:PORT`, `simulated:NAME`, `replayed:FILE`.

A new sort is an entry in SORTS.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any

from ampere.core import Meter, TrainingSetup
from ampere.core.errors import MeterError, UsageError, WorkerError
from ampere.core.kinds import USUAL_WIDTH
from ampere.core.setup import ALLOCATORS
from ampere.devices.external_meters import PHONE, asked_as, logged_meter
from ampere.meters import DEFAULT_WATTS_PER_CORE, METER_FAILED, counters
from ampere.runtimes import Description
from ampere.worker.machine import hello

from .answers import capabilities_in
from .device import Worker, fingerprint
from .environment import METER
from .local import LocalWorker
from .process_worker import ProcessWorker

LOCAL = "local"
Workers = dict[str, Worker]  # by allocator


@dataclass(frozen=True)
class Described:
    """What is known of a device before anything is trained on it."""

    identity: dict[str, Any]
    meter: Meter
    vector_width: int
    runtimes: tuple[str, ...]  # that can train there
    abilities: Description | None = None  # of a worker that is not ours: what it says that it can build


@dataclass(frozen=True)
class DeviceType:
    """A sort of device: how one is described without starting anything, and how it is opened."""

    describe: Callable[[str, float], Described]  # name, watts of a busy core
    open: Callable[[str, float, int], Workers]  # name, watts of a busy core, seed


def describe(spec: str, watts_per_core: float) -> Described:
    sort, name = _found(spec)
    return sort.describe(name, watts_per_core)


@contextmanager
def opened(spec: str, watts_per_core: float, seed: int = 0) -> Iterator[Workers]:
    """One device for each allocator that it can train with; they are closed at the end."""
    sort, name = _found(spec)
    devices = sort.open(name, watts_per_core, seed)
    try:
        yield devices
    finally:
        for device in devices.values():
            device.close()


def allocator_on(device: Mapping[str, Any], asked: str) -> str:
    """What was asked for where the device has a choice, and else the one that it has."""
    there = device.get("allocators", ALLOCATORS)
    return asked if asked in there else str(next(iter(there)))


def check_same_meter(spec: str, known: Meter) -> None:
    """Joules of two counters, or of a counter and a model, are not held against each other."""
    if not has_meters(spec):
        return
    here = describe(spec, DEFAULT_WATTS_PER_CORE).meter
    if here.name != known.name and (here.measured or known.measured):
        raise MeterError(
            f"the profile's joules come from {known.name}, those measured here from {here.name}: "
            f"set AMPERE_METER={asked_as(known.name)}, or take another profile"
        )


def has_meters(spec: str) -> bool:
    """Whether a worker looks for them there; devices without hardware have the one that they have."""
    return spec.partition(":")[0] in (LOCAL, "ssh")


def counters_of(spec: str, check: bool) -> list[dict[str, Any]]:
    """Every counter there, read or not; put to the test where that is asked for."""
    if spec == LOCAL:
        from ampere.devices.external_meters.phone import phones_found

        return [*counters({"check": check})["counters"], *phones_found()]
    if not has_meters(spec):
        return []
    with _over_ssh(_found(spec)[1], "tuned", DEFAULT_WATTS_PER_CORE) as device:
        return device.counters(check)


def setup_on(spec: str, setup: TrainingSetup | None = None, any_runtime: bool = False) -> TrainingSetup:
    """Where nobody named a runtime, a worker of somebody else's trains with what it has, and its profiles say so."""
    if setup and not any_runtime:
        return setup
    setup = setup or TrainingSetup()
    there = describe(spec, DEFAULT_WATTS_PER_CORE).runtimes if spec.startswith("tcp:") else ()
    return setup if setup.runtime in there or not there else replace(setup, runtime=there[0])


def _found(spec: str) -> tuple[DeviceType, str]:
    sort, _, name = spec.partition(":")
    if sort not in DEVICE_TYPES or (spec != LOCAL if sort == LOCAL else not name):
        raise UsageError(f"there is no device {spec!r}: {_hint(spec)}")
    return DEVICE_TYPES[sort], name


def _hint(spec: str) -> str:
    from ampere.devices.simulated import PARTS

    known = [LOCAL, *(f"simulated:{name}" for name in PARTS), "replayed:FILE", "ssh://user@host", "tcp://host:port"]
    near = get_close_matches(spec, known, n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else f"the devices are {', '.join(known)}"


def _as_it_says(identity: dict[str, Any], hello: Mapping[str, Any]) -> Described:
    """Workers of others may say more than we know, and leave out what they may leave out."""
    meter = {name: value for name, value in hello["meter"].items() if name in Meter.__dataclass_fields__}
    return Described(identity, Meter(**meter), hello.get("vector_width", USUAL_WIDTH), tuple(hello["runtimes"]))


def _describe_local(_: str, watts_per_core: float) -> Described:
    if os.environ.get(METER, "").partition(":")[0] == PHONE:
        raise UsageError("adb reads a phone's battery: train on the phone too, as in --device ssh://user@phone:8022")
    log = logged_meter()
    try:
        here = hello({"watts_per_core": watts_per_core, "meter": log.for_worker if log else None})
    except WorkerError as problem:
        raise (MeterError if problem.type == METER_FAILED else UsageError)(str(problem)) from None
    return _as_it_says(fingerprint(here), log.completed(here) if log else here)


def _open_local(_: str, watts_per_core: float, seed: int) -> Workers:
    """One worker with a quiet allocator and one with the system's; each starts when it is first asked."""
    return {allocator: LocalWorker(allocator, watts_per_core) for allocator in ("tuned", "system")}


def _describe_ssh(name: str, watts_per_core: float) -> Described:
    return _asked_over_ssh(name, watts_per_core, os.environ.get(METER, ""))


@lru_cache(maxsize=64)
def _asked_over_ssh(name: str, watts_per_core: float, meter: str) -> Described:
    """Once is enough."""
    with _over_ssh(name, "tuned", watts_per_core) as device:
        there = device.hello()
        return _as_it_says(fingerprint(there), there)


def _open_ssh(name: str, watts_per_core: float, seed: int) -> Workers:
    return {allocator: _over_ssh(name, allocator, watts_per_core) for allocator in ("tuned", "system")}


def _over_ssh(name: str, allocator: str, watts_per_core: float) -> ProcessWorker:
    from .ssh import Address, SshWorker

    return SshWorker(Address.parse(name), allocator, watts_per_core)


@lru_cache(maxsize=64)
def _describe_tcp(name: str, watts_per_core: float) -> Described:
    with _open_tcp(name, watts_per_core, 0)["tuned"] as device:
        there = device.hello()
        return replace(_as_it_says(device.identity(), there), abilities=capabilities_in(there))


def _open_tcp(name: str, watts_per_core: float, seed: int) -> Workers:
    from .tcp import TcpAddress, TcpWorker

    return {"tuned": TcpWorker(TcpAddress.parse(name), watts_per_core)}


def _describe_simulated(name: str, _: float) -> Described:
    device = _open_simulated(name, 0.0, 0)["tuned"]
    return _as_it_says(device.identity(), device.hello())


def _open_simulated(name: str, _: float, seed: int) -> Workers:
    from ampere.devices.simulated import PARTS, SimulatedWorker

    if name not in PARTS:
        raise UsageError(f"there is no device 'simulated:{name}': {_hint(f'simulated:{name}')}")
    return {"tuned": SimulatedWorker(name, seed)}


def _describe_replayed(name: str, _: float) -> Described:
    from .replayed import ReplayedWorker

    device = ReplayedWorker(Path(name))
    return _as_it_says(device.identity(), device.hello())


def _open_replayed(name: str, _: float, seed: int) -> Workers:
    from .replayed import ReplayedWorker, recording

    known = recording(Path(name))
    there = dict.fromkeys(["tuned", *(o.measurement.allocator for o in known.observations)])
    return {allocator: ReplayedWorker(Path(name), allocator, known) for allocator in there}


DEVICE_TYPES = {
    LOCAL: DeviceType(_describe_local, _open_local),
    "ssh": DeviceType(_describe_ssh, _open_ssh),
    "tcp": DeviceType(_describe_tcp, _open_tcp),
    "simulated": DeviceType(_describe_simulated, _open_simulated),
    "replayed": DeviceType(_describe_replayed, _open_replayed),
}
