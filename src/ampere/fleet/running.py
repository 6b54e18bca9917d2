"""The same work on every device of a fleet, on dask.distributed.

    tasks --submit(resources={name: 1})--> dask workers --> run(task) --> Outcome, as each ends
                                                             attempts, time limit

In one process (default) the only dask worker has a resource for each machine: two devices on one machine are measured
one after the other. Devices on this machine's own cores come last and alone, because what other tasks compute here
would disturb them. On a running scheduler one dask worker fronts each device, with a resource of the device's name:

    dask worker tcp://host:8786 --nthreads 1 --resources "pixel-7=1"

Names are unique, so a task cannot be moved to another device's worker. An outcome is a value also where a device hangs,
vanishes or lies: the rest goes on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ampere.core.errors import AmpereError, BusyError, DeviceError, first_line

from . import cluster
from .files import FleetDevice

if TYPE_CHECKING:
    from distributed import Client, Future

THREADS = 8  # tasks at a time in one process
PAUSE_SECONDS = 2.0  # before another attempt
HERE = "this machine"
LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Task:
    """Something to do with one device."""

    device: FleetDevice
    action: str
    arguments: Mapping[str, Any]
    attempts: int = 2
    seconds: float = 3600.0  # that an attempt may take

    @property
    def key(self) -> str:
        """What tells it from other tasks, also of an earlier run."""
        words = [str(self.arguments[name]) for name in ("models", "building", "seconds") if self.arguments.get(name)]
        return " ".join([self.action, self.device.name, self.device.address, *words])


@dataclass(frozen=True)
class Outcome:
    """What became of a task."""

    device: str
    action: str
    result: Mapping[str, Any] | None  # None where it failed
    problem: str = ""
    seconds: float = 0.0
    attempts: int = 1

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Outcome:
        return cls(**{name: record[name] for name in cls.__dataclass_fields__ if name in record})


Do = Callable[[str, FleetDevice, Mapping[str, Any]], Mapping[str, Any]]


def machine_of(device: FleetDevice) -> str:
    """The machine whose cores a device uses: simulated and replayed ones use none that is measured."""
    kind = device.address.partition(":")[0]
    if kind in ("simulated", "replayed", ""):
        return device.name
    host = urlsplit(device.address).hostname or ""
    return HERE if kind == "local" or host in LOOPBACK else host


def perform(task: Task, do: Do) -> Outcome:
    """Runs one task, again where the device failed; never raises."""
    began, problem = time.monotonic(), ""
    for attempt in range(1, task.attempts + 1):
        try:
            result = _limited(lambda: do(task.action, task.device, task.arguments), task.seconds)
            return Outcome(task.device.name, task.action, result, "", time.monotonic() - began, attempt)
        except _TimeOver as error:  # what hangs may still be measuring there
            problem = str(error)
            break
        except (DeviceError, BusyError) as error:
            problem = str(error)
            if attempt < task.attempts:
                time.sleep(PAUSE_SECONDS)
        except AmpereError as error:  # trying again would not help
            problem = str(error)
            break
        except Exception as error:
            problem = first_line(error)
            break
    return Outcome(task.device.name, task.action, None, problem, time.monotonic() - began, attempt)


class _TimeOver(DeviceError):
    """The time limit of a task."""


def _limited(work: Callable[[], Mapping[str, Any]], seconds: float) -> Mapping[str, Any]:
    """What the work returns; DeviceError where it has not ended in time. What hangs is left behind."""
    ended: list[Mapping[str, Any]] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            ended.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True, name="fleet task")
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    if not ended:
        raise _TimeOver(f"it did not end within {seconds:g} s: check the device, or give it longer with --time-limit")
    return ended[0]


def run_all(tasks: Sequence[Task], do: Do, scheduler: str | None = None) -> Iterator[Outcome]:
    """The outcome of each task, as they end. `scheduler` is the address of a running one."""
    if scheduler is not None:
        yield from _on_scheduler(tasks, do, scheduler)
        return
    here = [task for task in tasks if machine_of(task.device) == HERE]
    elsewhere = [task for task in tasks if machine_of(task.device) != HERE]
    machines = {_resource(machine_of(task.device)): 1.0 for task in tasks}
    with cluster.own_client(min(THREADS, max(1, len(machines))), machines) as client:
        for some in (elsewhere, here):
            futures = {_submit(client, task, do, _resource(machine_of(task.device))): task for task in some}
            yield from _as_they_end(futures)


def _on_scheduler(tasks: Sequence[Task], do: Do, scheduler: str) -> Iterator[Outcome]:
    """The outcomes of tasks; those that a scheduler knew of when it was lost are sent again when it is back."""
    left = {task.device.name: task for task in tasks}
    while left:
        try:
            with cluster.connect(scheduler) as client:
                for outcome in _on_workers(client, [*left.values()], do, scheduler):
                    del left[outcome.device]
                    yield outcome
        except cluster.SchedulerLostError:
            if not cluster.comes_back(scheduler, [*left]):
                lost = "the scheduler was lost: start it again, and run again; what has ended is kept"
                yield from (Outcome(task.device.name, task.action, None, lost) for task in left.values())
                return


def _on_workers(client: Client, tasks: Sequence[Task], do: Do, scheduler: str) -> Iterator[Outcome]:
    there, futures = cluster.fronted(client), {}
    # A dask worker that cannot unpack its task ends, and takes what it was doing with it: look before sending one.
    other = cluster.other_versions(client, {there[task.device.name] for task in tasks if task.device.name in there})
    for task in tasks:
        name = task.device.name
        if name not in there:
            words = f'start one with: dask worker {scheduler} --nthreads 1 --resources "{name}=1"'
            yield Outcome(name, task.action, None, f"no dask worker fronts {name}: {words}")
        elif problem := other.get(there[name]):
            yield Outcome(name, task.action, None, f"its dask worker {problem}")
        else:
            futures[_submit(client, task, do, name)] = task
    yield from _as_they_end(futures, client)


def _submit(client: Client, task: Task, do: Do, resource: str) -> Future:
    return client.submit(perform, task, do, resources={resource: 1}, pure=False, retries=task.attempts - 1)


def _as_they_end(futures: Mapping[Future, Task], client: Client | None = None) -> Iterator[Outcome]:
    """Outcomes in the order in which tasks end. On a cluster, a worker that is lost may come back for a while."""
    from distributed import CancelledError, wait
    from distributed import TimeoutError as NoneYet

    waiting, lost_since = dict(futures), dict[str, float]()
    while waiting:
        try:
            done = wait(list(waiting), timeout=cluster.POLL_SECONDS, return_when="FIRST_COMPLETED").done
        except NoneYet:
            done = set()
        except (CancelledError, OSError) as error:  # the scheduler forgot them, or is gone
            raise cluster.SchedulerLostError("the scheduler was lost") from error
        if client is not None and (client.status != "running" or any(f.status == "cancelled" for f in done)):
            raise cluster.SchedulerLostError("the scheduler was lost")
        for future in done:
            yield _outcome(future, waiting.pop(future))
        if client is None or done:
            continue
        there, now = cluster.fronted(client), time.monotonic()
        for future, task in list(waiting.items()):
            name = task.device.name
            if name in there:
                lost_since.pop(name, None)
            elif now - lost_since.setdefault(name, now) > cluster.LOST_SECONDS:
                del waiting[future]
                future.cancel()
                problem = f"its dask worker was lost for {cluster.LOST_SECONDS:g} s: start it again"
                yield Outcome(name, task.action, None, problem)


def _outcome(future: Future, task: Task) -> Outcome:
    if future.status == "finished":
        return future.result()
    error = future.exception() if future.status == "error" else None
    words = first_line(error) if error else "it was cancelled"
    return Outcome(task.device.name, task.action, None, f"its dask worker was lost ({words}): run again")


def _resource(machine: str) -> str:
    return f"machine {machine}"


def skipping(tasks: Sequence[Task], ended: Mapping[str, Outcome]) -> tuple[list[Task], list[Outcome]]:
    """The tasks that are left to do, and the outcomes of those that an earlier run has done."""
    done = [replace(ended[task.key]) for task in tasks if _has_ended(task, ended)]
    return [task for task in tasks if not _has_ended(task, ended)], done


def _has_ended(task: Task, ended: Mapping[str, Outcome]) -> bool:
    return task.key in ended and ended[task.key].result is not None
