"""The interface of a device's worker, the records that it returns, and the device's fingerprint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from types import TracebackType
from typing import Any, Protocol

from ampere.core import Measurement, TrainingSetup
from ampere.core.errors import DeviceError, ModelError
from ampere.core.measurement import WALL, clock_of


@dataclass(frozen=True)
class Yardstick:
    """What a yardstick step costs, run alone in a plain loop."""

    busy_seconds: float
    wall_seconds: float
    steps: int
    joules: float | None = None  # where a counter reads them
    watts_idle: float | None = None  # what the counter reads at rest
    early_seconds: float | None = None  # of its first steps, by the clock that steps on so many threads are compared by
    flags: Sequence[str] = ()  # what may be wrong with it, as in a measurement

    def seconds(self, threads: int) -> float:
        """Seconds of a step by the clock that steps on so many threads are compared by."""
        return self.wall_seconds if clock_of(threads) == WALL else self.busy_seconds

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Yardstick:
        return cls(**{f.name: record[f.name] for f in fields(cls) if f.name in record})


class VariantDied(DeviceError):
    """A variant that killed the worker twice, hung, or ran out of memory: skip it, and larger ones."""

    def __init__(self, message: str, out_of_memory: bool = False) -> None:
        super().__init__(message)
        self.out_of_memory = out_of_memory


class VariantFailed(ModelError):
    """A variant that cannot be built or trained."""


class Worker(Protocol):
    """A process on a device that trains and measures, or a simulation or recording of one."""

    def clock(self) -> float:
        """Seconds on the clock of its work: the host's, or a simulated device's own."""

    def hello(self) -> dict[str, Any]:
        """Its description of itself, with its meter and vector width."""

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
        """Train the workload paired with the yardstick, and return the windows of both.

        Without `count` windows are only timed, and short: a slow counter is not read. With `power` a gauge is read
        for a few samples once the load is steady, and the yardstick is only timed.
        """

    def yardstick(
        self,
        seconds: float = 1.0,
        threads: int = 1,
        runtime: str = "torch",
        power: bool = False,
        count: bool = True,
    ) -> Yardstick:
        """Nominal cost of the runtime's reference step; without `count` only its time."""

    def close(self) -> None: ...

    def __enter__(self) -> Worker: ...

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...


HARDWARE = ("cpu", "cores", "system", "machine")
SOFTWARE = ("release", "python", "torch", "runtimes")
SETTINGS = ("governor", "power_source")  # these may change on the same machine
ON_BATTERY = "battery"
ACCELERATOR = ("name", "memory_bytes", "power_limit_watts")  # what of an accelerator makes another device


def fingerprint(hello: Mapping[str, Any]) -> dict[str, Any]:
    """What decides the costs of a device, and nothing that names its owner; `id` survives software updates.

    The id is that of the hardware, of the machine where it is known, and of running on battery: `4f1c09ab_7d21e0c3`.
    """
    hardware = {field: hello.get(field) for field in HARDWARE}
    if "worker" in hello:  # another project's: it describes a machine differently
        hardware["worker"] = hello["worker"]
    card = hello.get("accelerator")
    if card:
        hardware["accelerator"] = accelerator_line(card)
    digest = hashlib.sha256(json.dumps(hardware, sort_keys=True).encode()).hexdigest()
    stated = {field: hello.get(field) for field in (*SOFTWARE, *SETTINGS) if field in SOFTWARE or hello.get(field)}
    machine = hello.get("machine_id") or None
    on_battery = hello.get("power_source") == ON_BATTERY
    parts = [digest[:16], *([machine] if machine else []), *([ON_BATTERY] if on_battery else [])]
    if card:
        stated["allocators"] = ["tuned"]  # a card has an allocator of its own
        stated["accelerator_state"] = {name: value for name, value in card.items() if name not in ACCELERATOR}
    return {"id": "_".join(parts), "machine_id": machine, **hardware, **stated}


def accelerator_line(card: Mapping[str, Any]) -> str:
    """`NVIDIA A100-SXM4-40GB, 40 GiB, at most 400 W`."""
    memory, watts = card.get("memory_bytes"), card.get("power_limit_watts")
    parts = [str(card.get("name") or card.get("on"))]
    parts += [f"{memory / 2**30:.3g} GiB"] if memory else []
    parts += [f"at most {watts:g} W"] if watts else []
    return ", ".join(parts)
