"""From a line of a log to a time and watts, by the columns that the user named."""

from __future__ import annotations

import csv
import re
from datetime import datetime

from ...errors import MeterError
from .cells import Cut
from .spec import LogSpec

ISO_WITH_SPACE = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:)")


class Columns:
    def __init__(self, spec: LogSpec, first: str) -> None:
        first = _plain(first)
        self._spec, self._cut = spec, Cut(first)
        self._places, self.named = self._found(self._cut.cells(first))  # and whether the first line names them

    def row(self, line: str) -> tuple[float, float]:
        """Seconds and watts; a ValueError says why it is none."""
        try:
            cells = self._cut.cells(_plain(line))
            return self._seconds(cells), self._watts(cells)
        except (IndexError, csv.Error):
            raise ValueError("has no time and power") from None

    def _found(self, names: list[str]) -> tuple[dict[str, int], bool]:
        asked = self._spec.columns
        if all(column.name in names for column in asked.values()):
            return {what: names.index(column.name) for what, column in asked.items()}, True
        if all(column.name.isdigit() and int(column.name) > 0 for column in asked.values()):
            return {what: int(column.name) - 1 for what, column in asked.items()}, not self._cut.is_number(names[-1])
        missing = [column.name for column in asked.values() if column.name not in names]
        raise MeterError(
            f"{self._spec.path} has no column {', '.join(missing)}; its first line is {', '.join(names)[:80]!r}"
        )

    def _seconds(self, cells: list[str]) -> float:
        if self._spec.columns["time"].unit != "iso":
            return self._scaled("time", cells)
        text = cells[self._places["time"]].replace("Z", "+00:00").replace(",", ".")
        try:
            return datetime.fromisoformat(text).timestamp()
        except ValueError:
            raise ValueError("has no time as ISO 8601 writes it") from None

    def _watts(self, cells: list[str]) -> float:
        if "power" in self._spec.columns:
            return self._scaled("power", cells)
        volts = self._spec.fixed_volts or self._scaled("voltage", cells)
        return abs(self._scaled("current", cells) * volts)

    def _scaled(self, what: str, cells: list[str]) -> float:
        return self._cut.number(cells[self._places[what]]) * self._spec.columns[what].scale


def _plain(line: str) -> str:
    return ISO_WITH_SPACE.sub(r"\1T\2", line.lstrip("#").strip(" "))
