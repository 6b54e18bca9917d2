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
    def identity(self) -> dict[str, Any]:
        """The device's fingerprint: the same before and after a restart, and without its host name."""

    def block(self, subject: Mapping[str, Any], setup: TrainingSetup, **options: Any) -> Block:
        """Options: iterations, warmup, pairing, isolation, stage, seconds_limit."""

    def yardstick(self, seconds: float = 1.0, threads: int = 1) -> Yardstick: ...

    def close(self) -> None: ...

    def __enter__(self) -> Device: ...

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...
