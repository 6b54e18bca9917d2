"""Lines of a log as cells: the first line tells what separates them, and every other has as many.

0.02,4.21      tabs separate, else semicolons, else commas, else spaces
0,02;4,21      a comma is a decimal one where tabs or semicolons separate
"""

from __future__ import annotations

import csv
import math
import re

SEPARATORS = ("\t", ";", ",")
QUOTED = re.compile(r'"[^"]*"')


class Cut:
    """How the lines of one log are cut. What is no line of it is a ValueError that says why."""

    def __init__(self, first: str) -> None:
        bare = QUOTED.sub("", first)
        self._separator = next((mark for mark in SEPARATORS if mark in bare), None)
        self._decimal = "." if self._separator == "," else None  # until a number tells
        self._count = len(self._cells(first))

    def cells(self, line: str) -> list[str]:
        found = self._cells(line)
        if len(found) != self._count:
            raise ValueError(f"has {len(found)} cells and the first line {self._count}")
        return found

    def number(self, cell: str) -> float:
        mark = next((mark for mark in ",." if mark in cell), self._decimal)
        if self._decimal not in (None, mark):
            raise ValueError("has another decimal mark than the lines before")
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
