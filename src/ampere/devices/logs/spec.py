"""What a log's columns mean: `FILE,time=t:ms,power=P:mW`, or current and voltage, each a column and its unit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...errors import UsageError
from ...network.measurement import LOG

PREFIX = "log:"
UNITS = {
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "iso": 1.0},
    "power": {"W": 1.0, "mW": 1e-3, "uW": 1e-6},
    "current": {"A": 1.0, "mA": 1e-3, "uA": 1e-6},
    "voltage": {"V": 1.0, "mV": 1e-3, "uV": 1e-6},
}
EXAMPLE = f"{PREFIX}bench.csv,time=Timestamp:ms,power=Power:mW"
EXAMPLES = f"{EXAMPLE} or {PREFIX}bench.csv,time=1,current=2:mA,voltage=5V"
SHAPE = f"{PREFIX}FILE,time=COLUMN,power=COLUMN"


@dataclass(frozen=True)
class Column:
    """By its name in the first line, or by its number from 1; `volts` may be a fixed number instead."""

    name: str
    unit: str
    scale: float


@dataclass(frozen=True)
class LogSpec:
    path: Path
    columns: dict[str, Column]
    fixed_volts: float | None = None  # voltage=5V, where the supply's is known and not logged

    @classmethod
    def parse(cls, text: str) -> LogSpec:
        path, *settings = text[len(PREFIX) :].split(",")
        asked = {}
        for setting in settings:
            what, _, column = setting.partition("=")
            if what not in UNITS or not column:
                raise UsageError(f"{setting!r} is no column of a log: write it as in {EXAMPLE}")
            asked[what] = column
        return cls.of(path, asked)

    @classmethod
    def of(cls, path: str, asked: Mapping[str, str], examples: str = EXAMPLES) -> LogSpec:
        """`asked` has for time, power, current, voltage their columns, each with its unit."""
        columns, volts = {}, None
        for what, column in asked.items():
            if what == "voltage" and (fixed := re.fullmatch(r"(\d+(?:\.\d+)?)V", column)):
                volts = float(fixed.group(1))
                continue
            columns[what] = _column(what, column)
        known = set(columns) | ({"voltage"} if volts else set())
        if not path or "time" not in known or not ("power" in known or {"current", "voltage"} <= known):
            raise UsageError(
                f"a log needs its file, its time, and its power or its current and voltage, as in {examples}"
            )
        return cls(Path(path), columns, volts)


def asked_as(meter: str) -> str:
    """What AMPERE_METER must be for a meter of this name."""
    return SHAPE if meter == LOG else meter


def _column(what: str, text: str) -> Column:
    name, unit = text, next(iter(UNITS[what]))
    if ":" in text and text.rpartition(":")[2] in UNITS[what]:
        name, _, unit = text.rpartition(":")
    elif ":" in text:
        raise UsageError(f"{text!r} has no unit of {what}: one of {', '.join(UNITS[what])}")
    return Column(name, unit, UNITS[what][unit])
