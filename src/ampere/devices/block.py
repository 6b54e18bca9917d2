"""What a worker answers, as frozen records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from ..errors import DeviceError
from ..network.windows import Windows


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
