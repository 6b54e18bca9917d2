"""What the workers of a device do, the records that they answer with, and which device it is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import TracebackType
from typing import Any, Protocol

from ampere.core import Measurement, TrainingSetup
from ampere.core.errors import DeviceError, ModelError


@dataclass(frozen=True)
class Yardstick:
    """What a step of the yardstick costs, run alone in a plain loop."""

    busy_seconds: float
    wall_seconds: float
    steps: int
    joules: float | None = None  # where a counter reads them
    watts_idle: float | None = None  # what the counter reads at rest

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Yardstick:
        try:
            return cls(**{f.name: record[f.name] for f in fields(cls) if f.name in record})
        except (TypeError, ValueError) as problem:
            raise DeviceError(f"the worker answered something else than its yardstick ({problem}); update it") from None


class VariantDied(DeviceError):
    """Training a variant ended the worker (twice), hung, or ran out of memory: skip it, and larger ones."""

    def __init__(self, message: str, out_of_memory: bool = False) -> None:
        super().__init__(message)
        self.out_of_memory = out_of_memory


class VariantFailed(ModelError):
    """A variant that cannot be built or trained."""


class Worker(Protocol):
    """A process on a device that trains and measures, or what stands in for one."""

    def clock(self) -> float:
        """Seconds that go by while it works: the host's, or a simulated device's own."""

    def hello(self) -> dict[str, Any]:
        """What it says of itself, its meter and its vector width among others."""

    def identity(self) -> dict[str, Any]:
        """The device's fingerprint: the same before and after a restart, and without its host name."""

    def block(
        self,
        workload: Mapping[str, Any],
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
    ) -> Measurement:
        """Trains the workload paired with the yardstick, and returns the windows of both.

        Without `count` windows are only timed, and as short as time needs: a slow counter is not read. With `power`
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


HARDWARE = ("cpu", "cores", "system", "machine")
SOFTWARE = ("release", "python", "torch", "runtimes")
SETTINGS = ("governor", "power_source")  # may change while it is the same device


def fingerprint(hello: Mapping[str, Any]) -> dict[str, Any]:
    """Which device this is: what decides its costs, nothing that names its owner; `id` survives software updates."""
    hardware = {field: hello.get(field) for field in HARDWARE}
    if "worker" in hello:  # not ours: what it says of a machine is not comparable with what ours says
        hardware["worker"] = hello["worker"]
    digest = hashlib.sha256(json.dumps(hardware, sort_keys=True).encode()).hexdigest()
    stated = {field: hello.get(field) for field in (*SOFTWARE, *SETTINGS) if field in SOFTWARE or hello.get(field)}
    return {"id": digest[:16], **hardware, **stated}
