"""A log that is still being written: rows of a time and watts, read as they come.

Timestamp,Power      the first line may name the columns; comma, semicolon, tab or spaces between them
0.000,4.21
0.050,4.2            a last line that is not ended is not read yet
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ...errors import MeterError
from .spec import Column, LogSpec

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[np.float64]]

SPLIT, SPACES = re.compile(r"\s*[,;\t]\s*"), re.compile(r"\s+")
ISO_WITH_SPACE = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:)")
GAP = 5.0  # times the usual interval: rows are missing
ROWS_TO_TELL = 8


class Log:
    def __init__(self, spec: LogSpec) -> None:
        self.spec = spec
        self._place, self._number = 0, 0
        self._columns: dict[str, int] | None = None
        self._times: list[float] = []
        self._watts: list[float] = []
        self._arrays: tuple[Array, Array] | None = None

    def advance(self) -> int:
        """Reads what was written since; how many rows there are now."""
        try:
            with open(self.spec.path, "rb") as file:
                if file.seek(0, 2) < self._place:
                    raise MeterError(f"{self.spec.path} became shorter: let the meter append to it, and start again")
                file.seek(self._place)
                new = file.read()
        except OSError as problem:
            raise MeterError(
                f"{self.spec.path} cannot be read ({problem.strerror}): start the meter's recording first"
            ) from None
        whole = new[: new.rfind(b"\n") + 1]
        self._place += len(whole)
        for line in whole.decode(errors="replace").splitlines():
            self._number += 1
            self._take(line.strip())
        return len(self._times)

    @property
    def interval(self) -> float | None:
        """The usual seconds between rows; None of too few rows."""
        if len(self._times) < ROWS_TO_TELL:
            return None
        import numpy as np

        return float(np.median(np.diff(self._times[-1000:])))

    @property
    def latest(self) -> float:
        return self._times[-1] if self._times else float("-inf")

    def since(self, row: int) -> tuple[Array, Array]:
        import numpy as np

        if self._arrays is None or len(self._arrays[0]) != len(self._times):
            self._arrays = np.array(self._times), np.array(self._watts)
        times, watts = self._arrays
        return times[row:], watts[row:]

    def covers(self, began: float, ended: float) -> bool:
        """Whether there are rows before, after, and all the time between."""
        import numpy as np

        times, _ = self.since(0)
        first, last = int(np.searchsorted(times, began)), int(np.searchsorted(times, ended))
        if first == 0 or last == len(times):
            return False
        return bool(np.max(np.diff(times[first - 1 : last + 1])) <= GAP * (self.interval or np.inf))

    def mean_watts(self, began: float, ended: float) -> float:
        """Over a span of the log's own time, each row standing for the time since the one before it."""
        import numpy as np

        times, watts = self.since(0)
        first, last = int(np.searchsorted(times, began)), int(np.searchsorted(times, ended))
        if first == 0 or last == len(times):
            raise MeterError(f"{self.spec.path} does not cover a window that was measured: let the recording go on")
        around = times[first - 1 : last + 1]
        if np.max(np.diff(around)) > GAP * (self.interval or np.inf):
            raise MeterError(f"{self.spec.path} lacks rows in the middle of a window: measure again")
        joules = np.concatenate([[0.0], np.cumsum(np.diff(around) * watts[first : last + 1])])
        return float((np.interp(ended, around, joules) - np.interp(began, around, joules)) / (ended - began))

    def _take(self, line: str) -> None:
        if not line or (line.startswith("#") and self._columns):
            return
        cells = _cells(ISO_WITH_SPACE.sub(r"\1T\2", line.lstrip("#").strip()))
        if self._columns is None:
            self._columns, named = self._places(cells)
            if named:
                return
        try:
            time, watts = self._time(cells), self._power(cells)
        except (IndexError, ValueError):
            raise MeterError(f"{self.spec.path}, line {self._number}: {line[:60]!r} has no time and power") from None
        if self._times and time <= self._times[-1]:
            raise MeterError(f"{self.spec.path}, line {self._number}: time goes back; start a new recording")
        self._times.append(time)
        self._watts.append(watts)

    def _places(self, cells: list[str]) -> tuple[dict[str, int], bool]:
        """Where each column is, and whether this line named them."""
        names = [cell.strip('"') for cell in cells]
        asked = self.spec.columns
        if all(column.name in names for column in asked.values()):
            return {what: names.index(column.name) for what, column in asked.items()}, True
        if all(column.name.isdigit() for column in asked.values()):
            return {what: int(column.name) - 1 for what, column in asked.items()}, not _number(cells[-1])
        missing = [column.name for column in asked.values() if column.name not in names]
        raise MeterError(
            f"{self.spec.path} has no column {', '.join(missing)}; its first line is {', '.join(names)[:80]!r}"
        )

    def _time(self, cells: list[str]) -> float:
        column, cell = self.spec.columns["time"], self._cell("time", cells)
        if column.unit == "iso":
            return datetime.fromisoformat(cell.replace("Z", "+00:00")).timestamp()
        return float(cell) * column.scale

    def _power(self, cells: list[str]) -> float:
        columns = self.spec.columns
        if "power" in columns:
            return self._scaled("power", columns["power"], cells)
        amperes = self._scaled("current", columns["current"], cells)
        volts = self.spec.fixed_volts or self._scaled("voltage", columns["voltage"], cells)
        return abs(amperes * volts)

    def _scaled(self, what: str, column: Column, cells: list[str]) -> float:
        return float(self._cell(what, cells)) * column.scale

    def _cell(self, what: str, cells: list[str]) -> str:
        assert self._columns is not None
        return cells[self._columns[what]].strip('"')


def _cells(line: str) -> list[str]:
    """Spaces separate where nothing else does: names such as `Main power (W)` have some."""
    return (SPLIT if SPLIT.search(line) else SPACES).split(line)


def _number(text: str) -> bool:
    try:
        float(text.strip('"'))
    except ValueError:
        return False
    return True
