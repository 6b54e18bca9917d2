"""Connections to dask.distributed: a cluster inside this process, or a scheduler that runs somewhere.

A scheduler that is started again on its port is connected to again, and what was not done is sent again; whoever starts
it starts its workers too. Bulk work (`spread`) needs no particular worker, and goes on in this process where no
scheduler comes back.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, TypeVar

from ampere.core.errors import DeviceError, RuntimeMissingError

if TYPE_CHECKING:
    from distributed import Client, Future

CONNECTING_SECONDS = 10.0
LOST_SECONDS = 60.0  # that a scheduler or a dask worker may be away while there is work to do
POLL_SECONDS = 2.0  # between two looks at who is there
AHEAD = 3  # pieces of bulk work that wait for each thread of the cluster
VERSION = "ampere:__version__"
LOOPBACK_ONLY = "127.0.0.1:0"  # dask always serves a page about its state, by default to everybody

Piece = TypeVar("Piece")
Made = TypeVar("Made")


class SchedulerLostError(DeviceError):
    """The scheduler ended, and knows nothing of what it was sent."""


def fronted(client: Client) -> dict[str, str]:
    """The names of the devices that dask workers front, and the addresses of these."""
    try:
        workers = client.scheduler_info(n_workers=-1)["workers"]
    except TypeError:  # older versions list all workers anyway
        workers = client.scheduler_info()["workers"]
    return {str(name): address for address, worker in workers.items() for name in worker.get("resources", {})}


def other_versions(client: Client, workers: Collection[str]) -> dict[str, str]:
    """What is wrong with the Ampere of each worker that has another one or none, by address."""
    here = resolve_name(VERSION)
    found = client.run(resolve_name, VERSION, workers=[*workers], on_error="return") if workers else {}
    return {
        address: f"has {f'Ampere {said}' if isinstance(said, str) else 'no Ampere'}: install {here} there"
        for address, said in found.items()
        if said != here
    }


@contextmanager
def own_client(threads: int, resources: Mapping[str, float]) -> Iterator[Client]:
    with _needed():
        from distributed import Client, LocalCluster
    # It looks for this machine's address in the network, and may be without one.
    warnings.filterwarnings("ignore", "Couldn't detect a suitable IP address", RuntimeWarning)
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=threads,
            processes=False,
            dashboard_address=LOOPBACK_ONLY,
            worker_dashboard_address=LOOPBACK_ONLY,
            scheduler_kwargs={"dashboard": False},
            resources=dict(resources),
            silence_logs=40,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@contextmanager
def connect(scheduler: str) -> Iterator[Client]:
    with _needed():
        from distributed import Client
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what is lost is said in our own words
    try:
        client = Client(scheduler, timeout=CONNECTING_SECONDS)
    except (OSError, TimeoutError, ValueError) as error:
        raise DeviceError(f"the scheduler {scheduler} cannot be reached ({error!s:.100}): is it running?") from None
    try:
        _check_versions(client, scheduler)
        yield client
    finally:
        client.close()


def _check_versions(client: Client, scheduler: str) -> None:
    """Refuses a scheduler of another version: messages would be misunderstood somewhere in the middle."""
    from distributed import __version__ as here

    said: Any = client.sync(client.scheduler.versions, packages=[])  # `get_versions` would ask all workers too
    there = said.get("packages", {}).get("distributed")
    if here != there:
        raise DeviceError(
            f"the scheduler {scheduler} runs dask.distributed {there}, and {here} is installed here: "
            "install the same version on both"
        )


@contextmanager
def _needed() -> Iterator[None]:
    try:
        yield
    except ImportError:
        raise RuntimeMissingError("dask is not installed: pip install 'ampere-energy[fleet]'") from None


def spread(
    work: Callable[[Piece], Made],
    pieces: Iterable[Piece],
    scheduler: str,
    on_notice: Callable[[str], None] = lambda text: None,
) -> Iterator[Made]:
    """What `work` returns for each piece, in the order in which they end, on any workers of a running scheduler.

    A piece whose worker is lost is done by another one. Where no scheduler comes back, this process goes on.
    """
    left, connected = dict(enumerate(pieces)), False
    while left:
        try:
            with connect(scheduler) as client:
                connected = True
                for number, made in _pieces_on(client, work, left):
                    del left[number]
                    yield made
        except SchedulerLostError:
            on_notice(f"the scheduler {scheduler} was lost: waiting {LOST_SECONDS:g} s for it; what has ended is kept")
            if not comes_back(scheduler):
                break
        except DeviceError as problem:
            if not connected:
                raise
            on_notice(str(problem))
            break
    if left:
        on_notice(f"{len(left)} parts that are left are computed in this process")
        yield from map(work, left.values())


def _pieces_on(client: Client, work: Callable[[Piece], Made], left: Mapping[int, Piece]) -> Iterator[tuple[int, Made]]:
    """Numbers of pieces and what was made of them. Few are sent ahead: the scheduler's memory stays small too."""
    from distributed import CancelledError, wait
    from distributed import TimeoutError as NoneYet

    workers = _usable(client)
    threads = client.nthreads()
    ahead = AHEAD * sum(threads.get(address, 1) for address in workers)
    todo, since = iter(sorted(left)), time.monotonic()
    sent: dict[Future, int] = {}
    with _losing():
        while True:
            while len(sent) < ahead and (number := next(todo, None)) is not None:
                future = client.submit(work, left[number], pure=False, retries=3, workers=workers)
                sent[future] = number
            if not sent:
                return
            with suppress(NoneYet):
                for future in wait([*sent], timeout=POLL_SECONDS, return_when="FIRST_COMPLETED").done:
                    if future.status == "cancelled":
                        raise CancelledError
                    yield sent.pop(future), _result(future)
                    since = time.monotonic()
            if client.status != "running":
                raise CancelledError
            if {*workers} & (there := {*client.nthreads()}):
                continue
            if there:  # others were started: connect again, and look at them
                raise CancelledError
            if time.monotonic() - since > LOST_SECONDS:
                raise DeviceError(f"all workers of {client.scheduler.address} were lost for {LOST_SECONDS:g} s")


def _result(future: Future) -> Any:
    """What was made. A scheduler unpacks what it is sent, and needs what it was made of."""
    try:
        return future.result()
    except RuntimeError as error:
        if "deserialization" not in str(error):
            raise
        raise DeviceError(f"the scheduler {future.client.scheduler.address} has no Ampere: install it there") from None


def _usable(client: Client) -> list[str]:
    """The workers that have this Ampere. Raises DeviceError where there are none."""
    until = time.monotonic() + LOST_SECONDS
    while not (there := [*client.nthreads()]) and time.monotonic() < until:
        time.sleep(min(POLL_SECONDS, 0.2))  # they may be starting
    other = other_versions(client, there)
    if found := [address for address in there if address not in other]:
        return found
    problem = next(iter(other.values()), "is missing")
    address = client.scheduler.address
    raise DeviceError(f"no dask worker of {address} can be used, one {problem}: start one with: dask worker {address}")


@contextmanager
def _losing() -> Iterator[None]:
    """Turns all ways in which dask says that a scheduler is gone into one."""
    from distributed import CancelledError

    try:
        yield
    except (CancelledError, OSError) as error:
        raise SchedulerLostError("the scheduler was lost") from error


def comes_back(scheduler: str, names: Collection[str] = ()) -> bool:
    """Whether the scheduler is there again within LOST_SECONDS, and workers that front these devices."""
    until, back = time.monotonic() + LOST_SECONDS, False
    while time.monotonic() < until:
        with suppress(DeviceError, OSError), connect(scheduler) as client:
            back = True
            if {*names} <= {*fronted(client)}:
                return True
        time.sleep(min(POLL_SECONDS, 0.5))
    return back
