"""A log that is still being written: rows of a time and watts, read as they come.

Timestamp,Power      the first line may name the columns; it tells what separates them
0.000,4.21
0.050,4.2            a last line that is not ended is not read yet
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import MeterError
from .columns import Columns
from .spec import LogSpec

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[np.float64]]

GAP = 5.0  # times the usual interval: rows are missing
ROWS_TO_TELL = 8
LONGEST_PAUSE_SECONDS = 3600.0  # between rows by one clock
STEP_SECONDS = 1.0  # without a row: nobody knows whether the meter paused or its clock was set
BYTE_ORDER_MARK = "\ufeff"


class ClockWasSet(MeterError):
    """The log's time went back, or far ahead: what it was aligned with before does not hold any more."""


class Log:
    def __init__(self, spec: LogSpec) -> None:
        self.spec = spec
        self._place, self._number = 0, 0
        self._columns: Columns | None = None
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
        for line in new[: new.rfind(b"\n") + 1].splitlines(keepends=True):
            self._place += len(line)  # a line that is refused is not read again
            self._number += 1
            self._take(line.decode(errors="replace").lstrip(BYTE_ORDER_MARK).strip(" \r\n"))
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

    def stepped(self, began: float, ended: float) -> bool:
        """Whether its time may have been set between."""
        import numpy as np

        times, _ = self.since(0)
        inside = times[np.searchsorted(times, began) : int(np.searchsorted(times, ended)) + 1]
        return bool(np.max(np.diff(inside), initial=0.0) > max(STEP_SECONDS, GAP * (self.interval or 0.0)))

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
        """Rows by a clock that was set since are forgotten."""
        ahead = time - self._times[-1] if self._times else 1.0
        if not 0 < ahead <= LONGEST_PAUSE_SECONDS:
            self._times, self._watts, self._arrays = [], [], None
        self._times.append(time)
        self._watts.append(watts)
        if ahead <= 0:
            raise ClockWasSet(f"{self.spec.path}, line {self._number}: time goes back; start a new recording")
        if ahead > LONGEST_PAUSE_SECONDS:
            raise ClockWasSet(
                f"{self.spec.path}, line {self._number}: time jumps {ahead:.3g} s ahead, as where a clock was set: "
                "keep the rows of one recording, and name the time's unit"
            )
