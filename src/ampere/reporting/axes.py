"""A plot's frame: quiet grid lines, round numbers, and what the axes mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .marks import Line, Mark, Text
from .scales import Scale

TICK, LABEL = 11.5, 12.0


@dataclass(frozen=True)
class Plot:
    """The rectangle in which data lies, in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def x_axis(
        self, scale: Scale, words: Callable[[float], str], label: str, most: int = 6, grid: bool = True
    ) -> list[Mark]:
        marks: list[Mark] = []
        for tick in scale.ticks(most):
            x = scale(tick)
            if grid:
                marks.append(Line([(x, self.top), (x, self.bottom)], "faint"))
            marks.append(Text(x, self.bottom + 17, words(tick), TICK, "muted", "middle"))
        marks.append(Line([(self.left, self.bottom), (self.right, self.bottom)], "muted"))
        marks.append(Text((self.left + self.right) / 2, self.bottom + 36, label, LABEL, "muted", "middle"))
        return marks

    def y_axis(
        self, scale: Scale, words: Callable[[float], str], label: str, most: int = 6, grid: bool = True
    ) -> list[Mark]:
        """Its label stands above the numbers, where it can be read without turning one's head."""
        marks: list[Mark] = []
        for tick in scale.ticks(most):
            y = scale(tick)
            if grid:
                marks.append(Line([(self.left, y), (self.right, y)], "faint"))
            marks.append(Text(self.left - 7, y + 4, words(tick), TICK, "muted", "end"))
        marks.append(Text(4, self.top - 12, label, LABEL, "muted"))
        return marks
