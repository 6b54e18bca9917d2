"""A surface seen from above: joules in ten steps of colour over two numbers of channels, with what was measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .drawing import RAMP, Datum, Dot, Drawing, Linear, Log, Mark, Plot, Text, Tiles, whole

KEY_HEIGHT, KEY_ROOM = 9.0, 40.0
OVERLAP = 0.5  # pixels, so that no ground shines through between tiles


@dataclass(frozen=True)
class Seen:
    x: float
    y: float
    tip: str
    alone: bool  # measured by itself, not within a network


@dataclass(frozen=True)
class Surface:
    xs: Sequence[float]
    ys: Sequence[float]
    values: Sequence[Sequence[float]]  # a row for each y
    seen: Sequence[Seen]

    @property
    def bounds(self) -> tuple[float, float]:
        every = [v for row in self.values for v in row]
        return min(every), max(max(every), min(every) * 1.01)


def draw(surface: Surface, width: float, unit: str, words: Callable[[float], str]) -> Drawing:
    plot = Plot(46, KEY_ROOM + 34, width - 12, KEY_ROOM + 34 + 0.72 * (width - 58))
    left, right = _edges(surface.xs), _edges(surface.ys)
    across = Linear(left[0], left[-1], plot.left, plot.right, whole=True)
    up = Linear(right[0], right[-1], plot.bottom, plot.top, whole=True)
    marks: list[Mark] = [*_key(surface, plot, unit, words), *_tiles(surface, left, right, across, up)]
    marks += plot.x_axis(across, whole, "channels in", 6, grid=False)
    marks += plot.y_axis(up, whole, "channels out", 6, grid=False)
    marks += [Datum([_dot(seen, across(seen.x), up(seen.y))], seen.tip) for seen in surface.seen]
    return Drawing(width, plot.bottom + 46, marks)


def _dot(seen: Seen, x: float, y: float) -> Dot:
    return Dot(x, y, 4.2, "#ffffff", "#101418") if seen.alone else Dot(x, y, 2.8, "#101418", "#ffffff")


def _edges(centres: Sequence[float]) -> list[float]:
    """Half way between neighbours; the outermost tiles end at their own centres' distance."""
    if len(centres) < 2:
        return [centres[0] - 0.5, centres[0] + 0.5]
    between = [(a + b) / 2 for a, b in pairwise(centres)]
    return [2 * centres[0] - between[0], *between, 2 * centres[-1] - between[-1]]


def _tiles(surface: Surface, left: list[float], right: list[float], across: Linear, up: Linear) -> list[Mark]:
    """Neighbours of one colour in a row are one tile."""
    by_step: dict[int, list[tuple[float, float, float, float]]] = {}
    low, high = surface.bounds
    for j, row in enumerate(surface.values):
        top, bottom = up(right[j + 1]), up(right[j])
        start = 0
        for i in range(1, len(row) + 1):
            if i == len(row) or step(row[i], low, high) != step(row[start], low, high):
                x = across(left[start])
                tile = (x, top, across(left[i]) - x + OVERLAP, bottom - top + OVERLAP)
                by_step.setdefault(step(row[start], low, high), []).append(tile)
                start = i
    return [Tiles(tuple(tiles), RAMP[s]) for s, tiles in sorted(by_step.items())]


def step(value: float, low: float, high: float) -> int:
    """Equal ratios get equal steps."""
    share = math.log(max(value, low) / low) / math.log(high / low)
    return min(len(RAMP) - 1, int(share * len(RAMP)))


def _key(surface: Surface, plot: Plot, unit: str, words: Callable[[float], str]) -> list[Mark]:
    low, high = surface.bounds
    scale = Log(low, high, plot.left, plot.right)
    part = (plot.right - plot.left) / len(RAMP)
    marks: list[Mark] = [
        Tiles(((plot.left + i * part, 2.0, part, KEY_HEIGHT),), colour) for i, colour in enumerate(RAMP)
    ]
    for tick in scale.ticks(5):
        marks.append(Text(scale(tick), KEY_HEIGHT + 17, words(tick), 11.5, "muted", "middle"))
    marks.append(Text(4, KEY_HEIGHT + 2, unit, 12, "muted"))
    return marks
