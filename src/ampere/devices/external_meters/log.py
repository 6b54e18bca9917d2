"""The log of a meter: how its lines are split, what its columns mean, and its rows, read as it grows.

    Timestamp,Power      the first line may name the columns; it shows what separates them
    0.000,4.21           tabs separate, else semicolons, else commas, else spaces
    0,02;4,21            a comma is a decimal mark where tabs or semicolons separate
    0.050,4.2            a last line without its end is not read yet

A log is named as `log:FILE,time=t:ms,power=P:mW`, or with current and voltage; each is a column and its unit.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import sub
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ampere.core.errors import MeterError, UsageError
from ampere.core.measurement import LOG, Window

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[np.float64]]


SEPARATORS = ("\t", ";", ",")
PLAIN = (b'"', b"#", b",", b"_", b"\0")  # what lines that are read together do not have
QUOTED = re.compile(r'"[^"]*"')


class Cut:
    """Splits the lines of one log into cells; a ValueError says why a line does not fit."""

    def __init__(self, first: str) -> None:
        bare = QUOTED.sub("", first)
        self._separator = next((mark for mark in SEPARATORS if mark in bare), None)
        self._decimal = "." if self._separator == "," else None  # until a number shows it
        self.count = len(self._cells(first))

    def plain_separator(self, whole: bytes) -> bytes | None:
        """What separates the cells of these lines, where numbers are as Python writes them and nothing is quoted."""
        mark = (self._separator or "").encode()
        return mark if mark and self._decimal == "." and not any(c in whole for c in PLAIN if c != mark) else None

    def cells(self, line: str) -> list[str]:
        found = self._cells(line)
        if len(found) != self.count:
            raise ValueError(f"has {len(found)} cells, but the first line has {self.count}")
        return found

    def number(self, cell: str) -> float:
        mark = next((mark for mark in ",." if mark in cell), self._decimal)
        if self._decimal not in (None, mark):
            raise ValueError("has a different decimal mark from the lines before")
        try:
            number = float(cell.replace(",", "."))
        except ValueError:
            raise ValueError("has no time and power") from None
        if not math.isfinite(number):
            raise ValueError("has no finite time and power")
        self._decimal = mark
        return number

    def is_number(self, cell: str) -> bool:
        try:
            self.number(cell)
        except ValueError:
            return False
        return True

    def _cells(self, line: str) -> list[str]:
        if self._separator is None:
            return [cell.strip('"') for cell in line.split()]
        if '"' not in line:
            return [cell.strip() for cell in line.split(self._separator)]
        return [cell.strip() for cell in next(csv.reader([line], delimiter=self._separator, skipinitialspace=True))]


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
    """A column, by its name in the first line or its number from 1, and its unit."""

    name: str
    unit: str
    scale: float


@dataclass(frozen=True)
class LogSpec:
    """A log file, and which of its columns are time, power, current and voltage."""

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
                raise UsageError(f"{setting!r} does not name a column of a log: write it as in {EXAMPLE}")
            asked[what] = column
        return cls.of(path, asked)

    @classmethod
    def of(cls, path: str, asked: Mapping[str, str], examples: str = EXAMPLES) -> LogSpec:
        """The log at a path; `asked` maps time, power, current and voltage to their columns, each with its unit."""
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
    """The value of AMPERE_METER for a meter of this name."""
    return SHAPE if meter == LOG else meter


def _column(what: str, text: str) -> Column:
    name, unit = text, next(iter(UNITS[what]))
    if ":" in text and text.rpartition(":")[2] in UNITS[what]:
        name, _, unit = text.rpartition(":")
    elif ":" in text:
        raise UsageError(f"{text!r} has no unit of {what}: use one of {', '.join(UNITS[what])}")
    return Column(name, unit, UNITS[what][unit])


ISO_WITH_SPACE = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:)")


class Columns:
    """Reads time and watts from a line, by the columns that the user named."""

    def __init__(self, spec: LogSpec, first: str) -> None:
        first = _plain(first)
        self._spec, self._cut = spec, Cut(first)
        self._places, self.named = self._found(self._cut.cells(first))  # and whether the first line names them

    def row(self, line: str) -> tuple[float, float]:
        """Seconds and watts of a line; a ValueError says why it has none."""
        try:
            cells = self._cut.cells(_plain(line))
            return self._seconds(cells), self._watts(cells)
        except (IndexError, csv.Error):
            raise ValueError("has no time and power") from None

    def many(self, whole: bytes) -> tuple[list[float], list[float]] | None:
        """Seconds and watts of plain lines, as `row` reads them; None where any line needs a closer look."""
        spec, mark = self._spec, self._cut.plain_separator(whole)
        if mark is None or "power" not in spec.columns or spec.columns["time"].unit == "iso":
            return None
        try:
            rows = [line.split(mark) for line in whole.splitlines()]
            read = [
                [float(row[self._places[what]]) * spec.columns[what].scale for row in rows]
                for what in ("time", "power")
            ]
        except (IndexError, ValueError):
            return None
        plain = {len(row) for row in rows} == {self._cut.count} and math.isfinite(sum(read[0]) + sum(read[1]))
        return (read[0], read[1]) if plain else None

    def _found(self, names: list[str]) -> tuple[dict[str, int], bool]:
        asked = self._spec.columns
        if all(column.name in names for column in asked.values()):
            return {what: names.index(column.name) for what, column in asked.items()}, True
        if all(column.name.isdigit() and int(column.name) > 0 for column in asked.values()):
            return {what: int(column.name) - 1 for what, column in asked.items()}, not self._cut.is_number(names[-1])
        missing = [column.name for column in asked.values() if column.name not in names]
        raise MeterError(
            f"{self._spec.path} has no column {', '.join(missing)}: its first line is {', '.join(names)[:80]!r}"
        )

    def _seconds(self, cells: list[str]) -> float:
        if self._spec.columns["time"].unit != "iso":
            return self._scaled("time", cells)
        text = cells[self._places["time"]].replace("Z", "+00:00").replace(",", ".")
        try:
            return datetime.fromisoformat(text).timestamp()
        except ValueError:
            raise ValueError("has no time in the format of ISO 8601") from None

    def _watts(self, cells: list[str]) -> float:
        if "power" in self._spec.columns:
            return self._scaled("power", cells)
        volts = self._spec.fixed_volts or self._scaled("voltage", cells)
        return abs(self._scaled("current", cells) * volts)

    def _scaled(self, what: str, cells: list[str]) -> float:
        return self._cut.number(cells[self._places[what]]) * self._spec.columns[what].scale


def _plain(line: str) -> str:
    return ISO_WITH_SPACE.sub(r"\1T\2", line.lstrip("#").strip(" "))


GAP = 5.0  # times the usual interval: rows are missing
ROWS_FOR_INTERVAL = 8
LONGEST_PAUSE_SECONDS = 3600.0  # between rows by one clock
STEP_SECONDS = 1.0  # without a row: either the meter paused or its clock was changed
BYTES_AT_A_TIME, LONGEST_LINE = 1 << 22, 1 << 16
MOST_ROWS = 800_000  # that are read in two seconds
BYTE_ORDER_MARK = "\ufeff"


class ClockWasSet(MeterError):
    """The log's time went back, or far ahead: an earlier alignment no longer holds."""


class Log:
    """A log that may still be written: times and watts of its rows."""

    def __init__(self, spec: LogSpec) -> None:
        self.spec = spec
        self._place, self._number = 0, 0
        self._columns: Columns | None = None
        self._times: list[float] = []
        self._watts: list[float] = []
        self._arrays: tuple[Array, Array] | None = None

    def advance(self) -> int:
        """Read what was written since the last call; returns the number of rows."""
        while new := self._next_bytes():
            whole = new[: new.rfind(b"\n") + 1]
            if len(new) >= LONGEST_LINE and not whole:
                raise MeterError(f"{self.spec.path}, line {self._number + 1} is longer than {len(new):,} bytes")
            if not whole:
                break
            if self._take_together(whole):
                continue
            for line in whole.splitlines(keepends=True):
                self._place += len(line)  # a line that is refused is not read again
                self._number += 1
                self._take(line.decode(errors="replace").lstrip(BYTE_ORDER_MARK).strip(" \r\n"))
        return len(self._times)

    def _take_together(self, whole: bytes) -> bool:
        """Read many plain rows at once, which is five times as fast; False where they must be read line by line."""
        found = self._columns.many(whole) if self._columns else None
        if not found:
            return False
        times, watts = found
        every = [*self._times[-1:], *times]
        steps = [1.0, *map(sub, every[1:], every)]
        if len(self._times) + len(times) > MOST_ROWS or min(steps) <= 0 or max(steps) > LONGEST_PAUSE_SECONDS:
            return False
        self._times += times
        self._watts += watts
        self._place += len(whole)
        self._number += len(times)
        return True

    def _next_bytes(self) -> bytes:
        try:
            with open(self.spec.path, "rb") as file:
                if file.seek(0, 2) < self._place:
                    raise MeterError(f"{self.spec.path} became shorter: let the meter append to it, and start over")
                file.seek(self._place)
                return file.read(BYTES_AT_A_TIME if self._columns else LONGEST_LINE)
        except OSError as problem:
            raise MeterError(
                f"{self.spec.path} cannot be read ({problem.strerror}): start the meter's recording first"
            ) from None

    @property
    def interval(self) -> float | None:
        """The usual seconds between rows; None while there are too few rows."""
        if len(self._times) < ROWS_FOR_INTERVAL:
            return None
        import numpy as np

        return float(np.median(np.diff(self._times[-1000:])))

    @property
    def latest(self) -> float:
        """The time of the last row."""
        return self._times[-1] if self._times else float("-inf")

    def since(self, row: int) -> tuple[Array, Array]:
        """Times and watts from this row on."""
        import numpy as np

        if self._arrays is None or len(self._arrays[0]) != len(self._times):
            self._arrays = np.array(self._times), np.array(self._watts)
        times, watts = self._arrays
        return times[row:], watts[row:]

    def covers(self, began: float, ended: float) -> bool:
        """Whether the log has rows before, after, and throughout this span."""
        import numpy as np

        times, _ = self.since(0)
        first, last = int(np.searchsorted(times, began)), int(np.searchsorted(times, ended))
        if first == 0 or last == len(times):
            return False
        return bool(np.max(np.diff(times[first - 1 : last + 1])) <= GAP * (self.interval or np.inf))

    def stepped(self, began: float, ended: float) -> bool:
        """Whether the log's clock may have been changed during this span."""
        import numpy as np

        times, _ = self.since(0)
        inside = times[np.searchsorted(times, began) : int(np.searchsorted(times, ended)) + 1]
        return bool(np.max(np.diff(inside), initial=0.0) > max(STEP_SECONDS, GAP * (self.interval or 0.0)))

    def mean_watts(self, began: float, ended: float) -> float:
        """Mean power over a span of the log's time; each row is the power since the row before it."""
        import numpy as np

        times, watts = self.since(0)
        first, last = int(np.searchsorted(times, began)), int(np.searchsorted(times, ended))
        if first == 0 or last == len(times):
            raise MeterError(f"{self.spec.path} does not cover a window that was measured: let the recording continue")
        around = times[first - 1 : last + 1]
        if np.max(np.diff(around)) > GAP * (self.interval or np.inf):
            raise MeterError(f"{self.spec.path} lacks rows in the middle of a window: measure again")
        joules = np.concatenate([[0.0], np.cumsum(np.diff(around) * watts[first : last + 1])])
        return float((np.interp(ended, around, joules) - np.interp(began, around, joules)) / (ended - began))

    def _take(self, line: str) -> None:
        if not line.strip() or (line.startswith("#") and self._columns):
            return
        if self._columns is None:
            self._columns = Columns(self.spec, line)
            if self._columns.named:
                return
        try:
            time, watts = self._columns.row(line)
        except ValueError as problem:
            raise MeterError(f"{self.spec.path}, line {self._number}: {line[:60]!r} {problem}") from None
        self._add(time, watts)

    def _add(self, time: float, watts: float) -> None:
        """Add a row; if the clock was changed, rows before it are dropped."""
        if len(self._times) >= MOST_ROWS:
            raise MeterError(f"{self.spec.path} has more than {MOST_ROWS:,} rows: export fewer a second")
        ahead = time - self._times[-1] if self._times else 1.0
        if not 0 < ahead <= LONGEST_PAUSE_SECONDS:
            self._times, self._watts, self._arrays = [], [], None
        self._times.append(time)
        self._watts.append(watts)
        if ahead <= 0:
            raise ClockWasSet(f"{self.spec.path}, line {self._number}: time goes back: start a new recording")
        if ahead > LONGEST_PAUSE_SECONDS:
            raise ClockWasSet(
                f"{self.spec.path}, line {self._number}: time jumps {ahead:.3g} s ahead, as if a clock was changed: "
                "keep the rows of one recording, and give the unit of its time column"
            )


SAME_SECONDS = 1e-3


class Following(Protocol):
    """How the log's clock follows the device's."""

    @property
    def rate(self) -> float: ...

    def in_log(self, device_seconds: float) -> float: ...


def busy_watts(log: Log, clocks: Following, windows: Sequence[Window]) -> float:
    """Joules per busy second of windows that say when they began."""
    places = _joined([(clocks.in_log(began), clocks.in_log(ended)) for began, ended in map(span, windows)])
    joules = sum(log.mean_watts(began, ended) * (ended - began) for began, ended in places) / clocks.rate
    if not joules > 0:
        raise MeterError(f"{log.spec.path} shows {joules:.3g} J for training: check its columns and units")
    return joules / sum(window.busy_seconds for window in windows)


def span(window: Window) -> tuple[float, float]:
    """When a window began and ended, by the device's clock."""
    began = window.began or 0.0
    return began, began + window.wall_seconds


def _joined(places: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Spans with those that follow each other directly joined: a yardstick step is shorter than a row."""
    joined = [places[0]]
    for began, ended in places[1:]:
        if began - joined[-1][1] < SAME_SECONDS:
            joined[-1] = joined[-1][0], ended
        else:
            joined.append((began, ended))
    return joined
