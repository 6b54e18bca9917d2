"""PyTorch's yardstick paired with a runtime's own: what profiles of several runtimes have in common.

own   PyTorch's   own   PyTorch's   ...        short windows in turn, each in a worker of its own
y1    c1          y2    c2

c = y0 quick(c_i) / quick(y_i)    y0   the nominal cost of the runtime's own, to which all of its profile refers

Of each the second quickest window: a machine whose neighbours come and go within a second is as quick for both then.

Joules in the same way where a counter reads them in such windows; a slow one is not read.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import median

from ampere.core.errors import AmpereError
from ampere.devices import Device, Worker, Yardstick
from ampere.runtimes import Description
from ampere.storage.recording import Header

from .meter_windows import slow

ROUNDS = 8
WINDOW_SECONDS = 0.1
COMMON = "torch"

_failed: set[str] = set()  # devices whose PyTorch does not train: they are not asked again


def with_common_yardstick(
    header: Header, own: Worker, device: Device, watts_per_core: float, runtime: Description
) -> Header:
    """The header with PyTorch's yardstick in the condition that its own refers to; unchanged where it is not timed.

    A PyTorch that is installed but does not train ends no profile of another runtime.
    """
    if device.spec in _failed or not _to_be_timed(header, device, runtime):
        return header
    workers = device.start(watts_per_core)
    try:
        pairs = _in_turn(header, own, workers["tuned"])
    except AmpereError:
        _failed.add(device.spec)
        return header
    finally:
        for worker in workers.values():
            worker.close()
    return _with_version(_in_its_condition(header, pairs), device.identity.get("torch"))


def _to_be_timed(header: Header, device: Device, runtime: Description) -> bool:
    possible = device.runs_several_workers and COMMON in device.runtimes and header.timing == "yardstick"
    return possible and not runtime.torch_yardstick and header.common_yardstick_seconds is None


def _in_turn(header: Header, own: Worker, torch: Worker) -> list[tuple[Yardstick, Yardstick]]:
    threads, runtime, count = header.setup.threads, header.setup.runtime, not slow(header.meter)
    torch.yardstick(WINDOW_SECONDS / 2, threads, COMMON, count=False)  # its worker starts
    return [
        (
            own.yardstick(WINDOW_SECONDS, threads, runtime, count=count),
            torch.yardstick(WINDOW_SECONDS, threads, COMMON, count=count),
        )
        for _ in range(ROUNDS)
    ]


def _in_its_condition(header: Header, pairs: list[tuple[Yardstick, Yardstick]]) -> Header:
    threads = header.setup.threads
    quick = [sorted(found.seconds(threads) for found in each)[1] for each in zip(*pairs, strict=True)]
    seconds = header.yardstick_seconds * quick[1] / quick[0]
    read = [common.joules / own.joules for own, common in pairs if common.joules and own.joules]
    joules = header.yardstick_joules * median(read) if header.yardstick_joules and read else None
    return replace(header, common_yardstick_seconds=seconds, common_yardstick_joules=joules)


def _with_version(header: Header, torch: str | None) -> Header:
    """Of today: where a profile is extended, its device was described on another day."""
    runtimes = {**header.device.get("runtimes", {}), COMMON: torch}
    return replace(header, device={**header.device, "torch": torch, "runtimes": runtimes})
