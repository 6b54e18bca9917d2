"""What a device does, and how it says that a variant was too much for it."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Protocol

from ..errors import DeviceError, ModelError
from ..network import TrainingSetup
from .block import Block, Yardstick


class VariantDied(DeviceError):
    """Training a variant ended the worker (twice), hung, or ran out of memory: skip it, and larger ones."""

    def __init__(self, message: str, out_of_memory: bool = False) -> None:
        super().__init__(message)
        self.out_of_memory = out_of_memory


class VariantFailed(ModelError):
    """A variant that cannot be built or trained."""


class Device(Protocol):
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

    def __enter__(self) -> Device: ...

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...
