"""PyTorch's yardstick beside a runtime's own: what profiles of several runtimes have in common.

own   PyTorch's   own   PyTorch's   ...        short windows in turn, each in a worker of its own
y1    c1          y2    c2

c = y0 median(c_i / y_i)          y0   the nominal cost of the runtime's own, to which all of its profile refers
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from statistics import median

from ampere.devices import Device, Yardstick, opened
from ampere.devices.opening import Described
from ampere.errors import AmpereError
from ampere.profiles.profile import Profile
from ampere.profiles.recording import Header
from ampere.worker.runtimes import Description

from .slowness import slow, steady_power

ROUNDS = 4
WINDOW_SECONDS = 0.1
COMMON = "torch"
STARTED = ("local", "ssh")  # where there can be a second worker


@contextmanager
def torch_beside(
    on: str, watts: float, there: Described, runtime: Description, old: Profile | None
) -> Iterator[Device | None]:
    """For its yardstick alone; None where that is the runtime's own, is known already, or cannot be timed."""
    possible = on.partition(":")[0] in STARTED and COMMON in there.runtimes
    if runtime.torch_yardstick or not possible or (old and old.common_yardstick_seconds):
        yield None
        return
    with opened(on, watts) as devices:
        yield devices["tuned"]


def timed_in_turn(header: Header, own: Device, torch: Device) -> Header:
    """With what PyTorch's yardstick costs in the condition that the header's own refers to.

    A PyTorch that is installed but does not train ends no profile of another runtime.
    """
    try:
        torch.yardstick(WINDOW_SECONDS / 2, header.setup.threads, COMMON)  # its worker starts
        pairs = [_pair(header, own, torch) for _ in range(1 if slow(header.meter) else ROUNDS)]
    except AmpereError:
        return header
    finally:
        torch.close()
    return _in_its_condition(header, pairs)


def _pair(header: Header, own: Device, torch: Device) -> tuple[Yardstick, Yardstick]:
    setup, power = header.setup, steady_power(header.meter, header.method, header.protocol)
    mine = own.yardstick(WINDOW_SECONDS, setup.threads, setup.runtime, power)
    return mine, torch.yardstick(WINDOW_SECONDS, setup.threads, COMMON, power)


def _in_its_condition(header: Header, pairs: list[tuple[Yardstick, Yardstick]]) -> Header:
    seconds = header.yardstick_seconds * median(common.cpu_seconds / own.cpu_seconds for own, common in pairs)
    read = [common.joules / own.joules for own, common in pairs if common.joules and own.joules]
    joules = header.yardstick_joules * median(read) if header.yardstick_joules and read else None
    return replace(header, common_yardstick_seconds=seconds, common_yardstick_joules=joules)
