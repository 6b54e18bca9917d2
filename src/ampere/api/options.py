"""The options that the functions of the API share, as one record."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict

from ampere.core import TrainingSetup
from ampere.core.errors import UsageError
from ampere.core.escaping import printable
from ampere.core.setup import ALLOCATORS, TIMINGS
from ampere.devices import LOCAL, Device
from ampere.devices.opening import usual_names
from ampere.estimation.estimator import Estimator
from ampere.profiling.running import ProfilingResult
from ampere.storage.profile import Profile

PROFILE_OBJECTS = (Profile, Estimator, ProfilingResult)  # a profile may be given as one of these, or as a file
AnyProfile = str | Path | Profile | Estimator | ProfilingResult
SETUP = ("runtime", "optimizer", "dtype", "threads")
OF_DEVICE = ("on", "meter", "compile_limit")  # a device that is open has them already

log = logging.getLogger("ampere")


@dataclass(frozen=True)
class Progress:
    """How far a long call is."""

    task: str  # such as "profiling lenet5"
    done: float
    total: float
    text: str  # what is left, in words


@dataclass(frozen=True)
class Options:
    """Where and how a model is trained, and how a profile of that is found, made or extended.

    The fields are keyword arguments of the functions of the API, with the names and the defaults of the flags.
    """

    profile: AnyProfile | None = None  # a file, or what `profile` made: used as it is; None: the device's own
    device: str | Device = LOCAL
    runtime: str | None = None
    optimizer: str | None = None
    dtype: str | None = None
    threads: int | None = None
    on: str | None = None  # the processor that trains, such as "cuda" or "auto"; None: the CPU
    method: str = "additive"  # how measurements are collected, and what is fitted to them
    timing: str = "yardstick"  # how each measurement is timed
    seconds: float | None = None  # of profiling, where that is needed; None: as long as usual
    own_end: bool = False  # profile until the method's own rule ends it, however long that takes
    iterations_per_measurement: int | None = None  # None: as many as usual
    meter: str | None = None
    watts_per_core: float | None = None  # where joules are modelled; None: the profile's own, or 5 W
    compile_limit: float | None = None  # seconds
    allocator: str = "system"
    allow_other_device: bool = False
    extend: bool = True  # whether a profile may be made or extended
    seed: int = 0
    progress: Callable[[Progress], None] | None = None
    notice: Callable[[str], None] | None = None  # one line a call; None: logged as "ampere"

    def __post_init__(self) -> None:
        if isinstance(self.profile, ProfilingResult):
            object.__setattr__(self, "profile", self.profile.profile)
        if self.allocator not in ALLOCATORS:
            raise UsageError(f"allocator {self.allocator!r} is none of {', '.join(ALLOCATORS)}")
        if self.timing not in TIMINGS:
            raise UsageError(f"timing {self.timing!r} is none of {', '.join(TIMINGS)}")
        if self.seconds is not None and not self.seconds > 0:
            raise UsageError(f"seconds is {self.seconds:g}, but must be greater than 0: give a number such as 15")
        if self.own_end and self.seconds is not None:
            raise UsageError("own_end profiles however long it takes: leave out seconds, or own_end")
        if self.iterations_per_measurement is not None and not self.iterations_per_measurement >= 1:
            raise UsageError("iterations_per_measurement must be a whole number from 1, such as 500")
        if self.watts_per_core is not None and not self.watts_per_core > 0:
            raise UsageError(f"{self.watts_per_core:g} watts per core make no sense: give a positive number")

    @property
    def how(self) -> tuple[str, str]:
        """How measurements are collected, and how each is timed."""
        return self.method, self.timing

    @property
    def named_setup(self) -> dict[str, Any]:
        """What the options say of the setup."""
        return usual_names({name: getattr(self, name) for name in SETUP})

    def setup_on(self, device: Device) -> TrainingSetup:
        return device.setup(self.runtime, self.optimizer, self.dtype, self.threads)

    def watts_on(self, device: Device) -> float | None:
        """Watts per core that were named, for this call or for the device."""
        return self.watts_per_core or device.watts_per_core

    @contextmanager
    def opened_device(self) -> Iterator[Device]:
        """The device, opened once for a call; one that was given stays open."""
        if isinstance(self.device, Device):
            named = next((name for name in OF_DEVICE if getattr(self, name) is not None), None)
            if named:
                raise UsageError(f"{named} belongs to a device that is open already: give it to ampere.device(...)")
            yield self.device
            return
        asked = {name: getattr(self, name) for name in OF_DEVICE}
        with Device(self.device, **asked, seed=self.seed) as device:
            yield device

    @contextmanager
    def opened(self) -> Iterator[Options]:
        """The same options with the device opened, for calls of several steps."""
        with self.opened_device() as device:
            yield replace(self, device=device, on=None, meter=None, compile_limit=None)

    def say(self, text: str) -> None:
        (self.notice or log.info)(printable(text))

    def report(self, task: str, done: float, total: float, text: str) -> None:
        if self.progress:
            self.progress(Progress(task, done, total, text))


class DeviceKeywords(TypedDict, total=False):
    """The fields of Options as keyword arguments, for functions that take the profile themselves."""

    device: str | Device
    runtime: str | None
    optimizer: str | None
    dtype: str | None
    threads: int | None
    on: str | None
    method: str
    timing: str
    seconds: float | None
    own_end: bool
    iterations_per_measurement: int | None
    meter: str | None
    watts_per_core: float | None
    compile_limit: float | None
    allocator: str
    allow_other_device: bool
    extend: bool
    seed: int
    progress: Callable[[Progress], None] | None
    notice: Callable[[str], None] | None


class OptionKeywords(DeviceKeywords, total=False):
    """All fields of Options as keyword arguments."""

    profile: AnyProfile | None
