"""What a device does, the records that it answers with, and which device it is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from types import TracebackType
from typing import Any, Protocol

from ampere.core import TrainingSetup
from ampere.core.errors import DeviceError, ModelError
from ampere.core.measurement import Windows

# What a worker answers, as frozen records.


@dataclass(frozen=True)
class Block:
    """One measured block; every figure is per iteration of the subject unless its name says otherwise."""

    ratio: float | None  # CPU time in yardstick steps: the median over pairs; None of a plain loop
    spread: float | None  # relative, of those ratios; None of a single pair
    seconds: float
    cpu_seconds: float
    yardstick_seconds: float | None
    joules: float | None  # None where only time was asked for
    iterations: int
    page_faults: float
    parameters: int
    loss: tuple[float | None, float | None]  # of the first and the last step; None where not finite
    elapsed: float  # wall seconds of the whole block
    conditions: Mapping[str, float]
    flags: tuple[str, ...]
    compile_seconds: float = 0.0  # of the subject, before its first step: in no other figure but `elapsed`
    yardstick_joules: float | None = None  # of a step of the yardstick, where a counter reads joules
    windows: Windows | None = None  # where a log that is read later will tell their joules

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Block:
        try:
            values = {f.name: record[f.name] for f in fields(cls) if f.name in record or f.default is MISSING}
            first, last = values["loss"]
            values["windows"] = values["windows"] if isinstance(values.get("windows"), Windows) else None
            return cls(**{**values, "loss": (first, last), "flags": tuple(values["flags"])})
        except (KeyError, TypeError, ValueError) as problem:
            raise DeviceError(f"the worker answered something else than a block ({problem}); update it") from None


@dataclass(frozen=True)
class Yardstick:
    """The yardstick's nominal cost a step, run alone in a plain loop."""

    cpu_seconds: float
    seconds: float
    cpu_seconds_p10: float
    seconds_p10: float
    steps: int
    joules: float | None = None  # where a counter reads them
    watts_idle: float | None = None  # what the counter reads at rest

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Yardstick:
        try:
            return cls(**{f.name: record[f.name] for f in fields(cls) if f.name in record})
        except (TypeError, ValueError) as problem:
            raise DeviceError(f"the worker answered something else than its yardstick ({problem}); update it") from None


# What a device does, and how it says that a variant was too much for it.


class VariantDied(DeviceError):
    """Training a variant ended the worker (twice), hung, or ran out of memory: skip it, and larger ones."""

    def __init__(self, message: str, out_of_memory: bool = False) -> None:
        super().__init__(message)
        self.out_of_memory = out_of_memory


class VariantFailed(ModelError):
    """A variant that cannot be built or trained."""


class Worker(Protocol):
    def clock(self) -> float:
        """Seconds that go by while it works: the host's, or a simulated device's own."""

    def hello(self) -> dict[str, Any]:
        """What it says of itself, its meter and its vector width among others."""

    def identity(self) -> dict[str, Any]:
        """The device's fingerprint: the same before and after a restart, and without its host name."""

    def block(
        self,
        subject: Mapping[str, Any],
        setup: TrainingSetup | None = None,
        *,
        iterations: int = 10,
        warmup: int = 4,
        pairing: str = "step",
        isolation: str = "inline",
        stage: str = "step",
        seconds_limit: float = 60.0,
        count: bool = True,
        power: bool = False,
    ) -> Block:
        """Trains the subject beside the yardstick, and tells what an iteration or one stage of it costs.

        Without `count` only time is told, in windows as short as time needs: a slow counter is not asked. With `power`
        a gauge is read for a few samples once the load is steady, and the yardstick is only timed.
        """

    def yardstick(
        self,
        seconds: float = 1.0,
        threads: int = 1,
        runtime: str = "torch",
        power: bool = False,
        count: bool = True,
    ) -> Yardstick:
        """The nominal cost of that runtime's own reference step; of its time alone where nothing is to be counted."""

    def close(self) -> None: ...

    def __enter__(self) -> Worker: ...

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...


# Which device this is: what decides its costs, and nothing that names its owner.

HARDWARE = ("cpu", "cores", "system", "machine")
SOFTWARE = ("release", "python", "torch", "runtimes")
SETTINGS = ("governor", "power_source")  # may change while it is the same device


def fingerprint(hello: Mapping[str, Any]) -> dict[str, Any]:
    """`id` stays the same when only software is updated."""
    hardware = {field: hello.get(field) for field in HARDWARE}
    if "worker" in hello:  # not ours: what it says of a machine is not comparable with what ours says
        hardware["worker"] = hello["worker"]
    digest = hashlib.sha256(json.dumps(hardware, sort_keys=True).encode()).hexdigest()
    told = {field: hello.get(field) for field in (*SOFTWARE, *SETTINGS) if field in SOFTWARE or hello.get(field)}
    return {"id": digest[:16], **hardware, **told}
