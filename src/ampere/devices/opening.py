"""A device, opened by its name: `local`, `ssh://HOST`, `tcp://HOST:PORT`, `simulated:NAME`, `replayed:FILE`.

    with Device("local") as device:          described once, when something of it is first asked for
        device.worker("tuned")               starts when it is first used, and stays
        with device.fresh(seed=1) as new:    workers of their own, for what must not share a process
            new["tuned"]

A new type of device is an entry in DEVICE_TYPES.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any

from ampere.core import Meter, TrainingSetup
from ampere.core.errors import AcceleratorError, MeterError, RuntimeMissingError, UsageError, WorkerError
from ampere.core.escaping import printable
from ampere.core.kinds import USUAL_WIDTH
from ampere.core.setup import ALLOCATORS, AUTO, CPU, SHORT_DTYPES, find_on
from ampere.devices.external_meters import PHONE, asked_as
from ampere.meters import DEFAULT_WATTS_PER_CORE, scope_at, watts_in
from ampere.runtimes import Description, description_of

from .answers import capabilities_in
from .device import Worker
from .environment import compile_limit, meter_name
from .local import LocalWorker
from .process_worker import ProcessWorker, WorkerOptions

LOCAL = "local"
HARDWARE = (LOCAL, "ssh")  # types whose workers look for meters, and which can run several workers at once
NOT_REAL = ("simulated", "replayed")
log = logging.getLogger("ampere")

Workers = dict[str, Worker]  # by allocator


@dataclass(frozen=True)
class Described:
    """What is known of a device before anything is trained on it."""

    identity: dict[str, Any]  # its fingerprint; `id` tells it from others
    meter: Meter
    vector_width: int
    runtimes: tuple[str, ...]  # that can train there
    foreign: Description | None = None  # of a worker of another make: what it says that it can build
    runs_named_code: bool = True  # also functions that a request names
    available_bytes: int | None = None  # of memory; None where it does not say
    threads: int = 1  # that a training loop there uses where nobody says otherwise
    on: str = CPU  # the processor that trains


class Device:
    """Where training runs. It is described once, hands out workers, and closes them."""

    def __init__(
        self,
        spec: str = LOCAL,
        *,
        on: str | None = None,
        meter: str | None = None,
        watts_per_core: float | None = None,
        compile_limit: float | None = None,
        seed: int = 0,
    ) -> None:
        """Opens nothing yet.

        `on` is the processor that trains: `cpu` (the default), `cuda`, `cuda:1`, `mps`, `xpu`, or `auto` for the
        accelerator that PyTorch reports there. `meter` and `compile_limit` default to AMPERE_METER and
        AMPERE_COMPILE_LIMIT. `seed` is for the noise of simulated devices.
        """
        self._type, self._name = _find(spec)
        asked_on = _processor(on)
        if asked_on != CPU and not self.is_real:
            raise UsageError(f"{spec} has a processor of its own: leave out --on")
        if meter and not self.is_real:
            raise UsageError(f"{spec} has a meter of its own: leave out --meter")
        if watts_per_core is not None and not watts_per_core > 0:
            raise UsageError(f"{watts_per_core:g} watts per core make no sense: give a positive number")
        self.spec, self.seed = spec, seed
        self.watts_per_core = watts_per_core  # None where nobody named them: a profile has its own
        self._options = _options(meter, watts_per_core or DEFAULT_WATTS_PER_CORE, compile_limit, asked_on)
        self._workers: dict[float, Workers] = {}  # by the watts of a core that joules are modelled with
        self._untouched: dict[tuple[float, int], Workers] = {}  # by watts and seed: those that only described it
        self._ahead: Future[Described] | None = None

    # What it is.

    @cached_property
    def described(self) -> Described:
        """What its worker says of itself."""
        return self._ahead.result() if self._ahead else self._describe()

    def describe_ahead(self) -> None:
        """Begin to ask its worker, while the caller does something else. Only here: elsewhere users may be asked."""
        if not self.is_local:
            return
        ahead: Future[Described] = Future()

        def describe() -> None:
            try:
                ahead.set_result(self._describe())
            except BaseException as problem:  # raised where the answer is needed
                ahead.set_exception(problem)

        self._ahead = ahead
        Thread(target=describe, daemon=True).start()

    def _describe(self) -> Described:
        worker = self._any_worker()
        said = worker.hello()
        width = said.get("vector_width", USUAL_WIDTH)
        for problem in said.get("unusable_counters", ()):  # a model never replaces a counter silently
            log.warning("joules are modelled, not measured: %s", printable(problem))
        return Described(
            worker.identity(),
            Meter.reported(said["meter"]),
            width,
            tuple(said["runtimes"]),
            capabilities_in(said),
            bool(said.get("factories", True)),
            said.get("available_bytes"),
            said.get("threads", 1),
            self._resolved(said.get("accelerator")),
        )

    def _resolved(self, accelerator: Mapping[str, Any] | None) -> str:
        """The processor that trains, as the worker names it."""
        asked = self._options.on
        if not accelerator and asked not in (CPU, AUTO):
            raise AcceleratorError(f"the worker of {self.spec} knows nothing of {asked}: update it, or leave out --on")
        return find_on(str(accelerator.get("on", CPU))) if accelerator else CPU

    @property
    def identity(self) -> dict[str, Any]:
        return self.described.identity

    @property
    def meter(self) -> Meter:
        return self.described.meter

    @property
    def vector_width(self) -> int:
        return self.described.vector_width

    @property
    def runtimes(self) -> tuple[str, ...]:
        """The names of those that can train there."""
        return self.described.runtimes

    @property
    def allocators(self) -> tuple[str, ...]:
        return tuple(self.identity.get("allocators", ALLOCATORS))

    @property
    def is_local(self) -> bool:
        return self.spec == LOCAL

    @property
    def is_real(self) -> bool:
        """Whether something is trained there; a simulated or replayed device trains nothing."""
        return self._type not in NOT_REAL

    @property
    def has_meters(self) -> bool:
        """Whether a worker looks for them there; devices without hardware have the one that they have."""
        return self._type in HARDWARE

    @property
    def runs_several_workers(self) -> bool:
        return self._type in HARDWARE

    def meter_at(self, watts_per_core: float) -> Meter:
        """Its meter, where modelled joules are those of so many watts."""
        if watts_in(self.meter.scope) is None:
            return self.meter
        return replace(self.meter, scope=scope_at(self.meter.scope, watts_per_core))

    @property
    def foreign_capabilities(self) -> Description | None:
        """What a worker of somebody else's says that it can build; None of ours, whose runtimes are in our table."""
        return self.described.foreign if self._type == "tcp" else None

    def capabilities(self, runtime: str) -> Description:
        """What a runtime can train there."""
        if (foreign := self.foreign_capabilities) is not None:
            return foreign
        try:
            usual = description_of(runtime)
            listens = self._type == "tcp"
            return usual._replace(factories=usual.factories and self.described.runs_named_code) if listens else usual
        except WorkerError as problem:
            raise (RuntimeMissingError if problem.type == "runtime_missing" else UsageError)(str(problem)) from None

    def setup(
        self,
        runtime: str | None = None,
        optimizer: str | None = None,
        dtype: str | None = None,
        threads: int | None = None,
    ) -> TrainingSetup:
        """How training runs there: what is not named is as usual there, with the device's own runtime and threads.

        Where an accelerator trains, one thread is enough to keep its queue full.
        """
        on = self.described.on
        if threads is None:
            threads = self.described.threads if on == CPU or not self.is_real else 1
        named = usual_names({"optimizer": optimizer, "dtype": dtype, "threads": threads, "on": on})
        try:
            return TrainingSetup(runtime or self._usual_runtime(), **named)
        except ValueError as problem:
            raise UsageError(str(problem)) from None

    def _usual_runtime(self) -> str:
        """Workers of others train with what they have; ours say themselves that PyTorch is missing."""
        usual = TrainingSetup().runtime
        there = self.runtimes if self._type == "tcp" else ()
        return usual if usual in there or not there else there[0]

    def allocator(self, asked: str) -> str:
        """The one asked for where the device has a choice, and else the one that it has."""
        return allocator_on(self.identity, asked)

    def counters(self, check: bool = False) -> list[dict[str, Any]]:
        """Every counter of energy there, readable or not; each tested under load where that is asked for."""
        worker = self.worker()
        if not self.has_meters or not isinstance(worker, ProcessWorker):
            return []
        if not self.is_local:
            return worker.counters(check)
        from ampere.devices.external_meters.phone import phones_found

        return [*worker.counters(check), *phones_found()]

    # What trains there.

    def worker(self, allocator: str = "tuned", watts_per_core: float | None = None) -> Worker:
        """Its worker with an allocator, the same one each time. The process starts with the first request."""
        watts = watts_per_core or self._options.watts_per_core
        if watts not in self._workers:
            self._workers[watts] = self._unused(watts, self.seed)
        return self._workers[watts][allocator]

    def _any_worker(self) -> Worker:
        """One that is there, or else a new one, which stays as good as new: it is only asked what the device is."""
        watts = self._options.watts_per_core
        if watts in self._workers:
            return self._workers[watts]["tuned"]
        return self._untouched.setdefault((watts, self.seed), self.start())["tuned"]

    @contextmanager
    def fresh(self, watts_per_core: float | None = None, seed: int | None = None) -> Iterator[Workers]:
        """Workers of their own, one for each allocator, closed at the end. The others are closed first."""
        watts = watts_per_core or self._options.watts_per_core
        workers = self._unused(watts, self.seed if seed is None else seed)
        self.close()
        try:
            yield workers
        finally:
            _close(workers)

    def _unused(self, watts_per_core: float, seed: int) -> Workers:
        """Workers that have trained nothing yet: those that described the device, or new ones."""
        return self._untouched.pop((watts_per_core, seed), None) or self.start(watts_per_core, seed)

    def start(self, watts_per_core: float | None = None, seed: int | None = None) -> Workers:
        """Workers that the caller closes."""
        watts = watts_per_core or self._options.watts_per_core
        options = replace(self._options, watts_per_core=watts)
        return DEVICE_TYPES[self._type](self._name, options, self.seed if seed is None else seed)

    def close(self) -> None:
        """Ends its workers; what is known of it stays, and it may be used again."""
        if self._ahead and not self._ahead.done():  # its worker can be ended once it is there
            self._ahead.add_done_callback(lambda _: self.close())
            return
        for workers in (*self._workers.values(), *self._untouched.values()):
            _close(workers)
        self._workers.clear()
        self._untouched.clear()

    def __enter__(self) -> Device:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Device({self.spec!r})"


def allocator_on(device: Mapping[str, Any], asked: str) -> str:
    """The allocator asked for where the device of this identity has a choice, and else the one that it has."""
    there = device.get("allocators", ALLOCATORS)
    return asked if asked in there else str(next(iter(there)))


def check_same_meter(device: Device, known: Meter) -> None:
    """Refuses to compare joules of two counters, or of a counter and a model."""
    if not device.has_meters:
        return
    here = device.meter
    if here.name != known.name and (here.measured or known.measured):
        raise MeterError(
            f"the profile's joules come from {known.name}, those measured here from {here.name}: "
            f"set AMPERE_METER={asked_as(known.name)}, or take another profile"
        )


def _options(meter: str | None, watts_per_core: float, limit: float | None, on: str) -> WorkerOptions:
    return WorkerOptions(meter_name(meter), watts_per_core, compile_limit(limit), on)


def _processor(on: str | None) -> str:
    try:
        return find_on(on or CPU)
    except ValueError as problem:
        raise UsageError(str(problem)) from None


def usual_names(setup: Mapping[str, Any]) -> dict[str, Any]:
    """What is named of a setup, in the words of a TrainingSetup: `AdamW`, `bf16` and torch.bfloat16 are understood."""
    named = {field: value for field, value in setup.items() if value is not None}
    if "optimizer" in named:
        named["optimizer"] = str(named["optimizer"]).lower()
    if "dtype" in named:
        plain = str(named["dtype"]).rpartition(".")[2].lower()
        named["dtype"] = SHORT_DTYPES.get(plain, plain)
    return named


def _close(workers: Workers) -> None:
    for worker in workers.values():
        worker.close()


# The types of devices: what follows the colon, the options of its workers, a seed -> a worker for each allocator.

Open = Callable[[str, WorkerOptions, int], Workers]


def _find(spec: str) -> tuple[str, str]:
    """Its type, and its name among those."""
    type_, _, name = spec.partition(":")
    if type_ not in DEVICE_TYPES or (spec != LOCAL if type_ == LOCAL else not name):
        raise UsageError(f"there is no device {spec!r}: {_hint(spec)}")
    return type_, name


def _hint(spec: str) -> str:
    from ampere.devices.simulated import PARTS

    type_, _, name = spec.partition(":")
    if type_ == "simulated":  # names are compared without what all have in common
        near = [f"simulated:{part}" for part in get_close_matches(name, PARTS, n=2, cutoff=0.5)]
        known = [f"simulated:{part}" for part in PARTS]
    else:
        known = [LOCAL, *(f"simulated:{part}" for part in PARTS), "replayed:FILE", "ssh://user@host", "tcp://host:port"]
        near = get_close_matches(spec, known, n=1, cutoff=0.6)
    return f"did you mean {' or '.join(near)}?" if near else f"the devices are {', '.join(known)}"


def _local(_: str, options: WorkerOptions, seed: int) -> Workers:
    """One worker with a quiet allocator and one with the system's."""
    if options.meter.partition(":")[0] == PHONE:
        raise UsageError("adb reads a phone's battery: train on the phone too, as in --device ssh://user@phone:8022")
    return {allocator: LocalWorker(allocator, options) for allocator in ("tuned", "system")}


def _ssh(name: str, options: WorkerOptions, seed: int) -> Workers:
    from .ssh import Address, SshWorker

    return {allocator: SshWorker(Address.parse(name), allocator, options) for allocator in ("tuned", "system")}


def _tcp(name: str, options: WorkerOptions, seed: int) -> Workers:
    from .tcp import TcpAddress, TcpWorker

    return {"tuned": TcpWorker(TcpAddress.parse(name), options)}


def _simulated(name: str, _: WorkerOptions, seed: int) -> Workers:
    from ampere.devices.simulated import PARTS, SimulatedWorker

    if name not in PARTS:
        raise UsageError(f"there is no device 'simulated:{name}': {_hint(f'simulated:{name}')}")
    return {"tuned": SimulatedWorker(name, seed)}


def _replayed(name: str, _: WorkerOptions, seed: int) -> Workers:
    from .replayed import ReplayedWorker, recording

    known = recording(Path(name))
    there = dict.fromkeys(["tuned", *(o.measurement.allocator for o in known.observations)])
    return {allocator: ReplayedWorker(Path(name), allocator, known) for allocator in there}


DEVICE_TYPES: dict[str, Open] = {
    LOCAL: _local,
    "ssh": _ssh,
    "tcp": _tcp,
    "simulated": _simulated,
    "replayed": _replayed,
}
