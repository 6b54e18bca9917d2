"""What drawings are made of: colours by role, so that one drawing serves light, dark and paper; marks; scales; axes."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

# Colours by role, distinguishable for colour-blind readers; the ramp (cividis) reads the same in light and dark.
LIGHT = {
    "paper": "#ffffff",
    "card": "#f6f7f9",
    "ink": "#1b2027",
    "muted": "#59636f",
    "faint": "#dfe3e8",
    "band": "#e9edf2",
    "one": "#1f5fa8",
    "two": "#d06f17",
    "three": "#15806d",
    "four": "#8450a6",
    "five": "#b8a11a",
    "six": "#c2477f",
    "step": "#3aa0c9",
    "rest": "#7d8792",
    "warning": "#b3261e",
}
DARK = {
    "paper": "#14181d",
    "card": "#1c2228",
    "ink": "#e9edf1",
    "muted": "#a3adb8",
    "faint": "#343c45",
    "band": "#262d35",
    "one": "#6cabf2",
    "two": "#f2a356",
    "three": "#4fc4ae",
    "four": "#c297e0",
    "five": "#e3cf57",
    "six": "#ef8fb8",
    "step": "#7cd0ee",
    "rest": "#8e99a4",
    "warning": "#ff8a80",
}
SERIES = ("one", "two", "three", "four", "five", "six")
RAMP = (
    "#00224e",
    "#123570",
    "#3b496c",
    "#575d6d",
    "#707173",
    "#8a8678",
    "#a59c74",
    "#c3b369",
    "#e1cc55",
    "#fee838",
)


def on_paper(role: str) -> str:
    """A role as a fixed colour, for pictures that leave the page."""
    return LIGHT.get(role, role)


def on_page(role: str) -> str:
    """A role as what the page's style sheet says it is, which changes with light and dark."""
    return f"var(--{role})" if role in LIGHT else role


def variables(colours: dict[str, str]) -> str:
    return "".join(f"--{role}:{colour};" for role, colour in colours.items())


Point: TypeAlias = tuple[float, float]
CHARACTER = 0.58  # the width of one, as a share of the font's size
SHAPES = ("circle", "square", "triangle", "diamond")


@dataclass(frozen=True)
class Rect:
    x: float
    y: float
    width: float
    height: float
    fill: str
    stroke: str = ""
    radius: float = 0.0
    opacity: float = 1.0


@dataclass(frozen=True)
class Tiles:
    """Many rectangles of one colour, side by side: (x, y, width, height) each."""

    tiles: tuple[tuple[float, float, float, float], ...]
    fill: str


@dataclass(frozen=True)
class Line:
    points: Sequence[Point]
    stroke: str
    width: float = 1.0
    dashed: bool = False


@dataclass(frozen=True)
class Area:
    points: Sequence[Point]
    fill: str
    opacity: float = 1.0


@dataclass(frozen=True)
class Dot:
    x: float
    y: float
    radius: float
    fill: str
    stroke: str = "paper"
    shape: str = "circle"


@dataclass(frozen=True)
class Text:
    x: float
    y: float
    words: str
    size: float = 12.0
    fill: str = "ink"
    anchor: str = "start"
    bold: bool = False


@dataclass(frozen=True)
class Datum:
    """Marks that together show one figure of the data; `tip` says it in words."""

    marks: Sequence[Mark]
    tip: str
    y: float = 0.0
    other_y: Mapping[str, float] = field(default_factory=dict)  # where it lies in another order


Mark: TypeAlias = "Rect | Tiles | Line | Area | Dot | Text | Datum"


@dataclass(frozen=True)
class Drawing:
    width: float
    height: float
    marks: Sequence[Mark]
    left: float = 0.0  # of the paper's upper left corner
    top: float = 0.0

    @property
    def data(self) -> list[Datum]:
        return [mark for mark in self.marks if isinstance(mark, Datum)]


def room_for(words: str, size: float = 12.0) -> float:
    """About how many pixels wide words are, on the safe side for the fonts that pages and papers use."""
    return CHARACTER * size * len(words)


def short_names(names: Sequence[str], room: float, size: float = 12.0) -> list[str]:
    """The names of a chart's rows, cut to the room that they have and still different from each other.

    Of a module path, parts that most of the names share are left out first.
    """
    most = max(5, int(room / (CHARACTER * size)))
    common = Counter(part for name in set(names) for part in name.split("."))
    shown = list(names)
    for i, name in enumerate(names):
        if len(name) > most:
            shown[i] = _shortened(
                name, most, common, {n for other, n in zip(names, shown, strict=True) if other != name}
            )
    return shown


def _shortened(name: str, most: int, common: Counter[str], taken: set[str]) -> str:
    parts = name.split(".")
    droppable = [k for k, part in enumerate(parts[:-1]) if not part.isdigit()]
    for place in sorted(droppable, key=lambda k: (-common[parts[k]], k)):
        if len(_joined(parts)) <= most:
            break
        shorter = ["" if k == place else part for k, part in enumerate(parts)]
        if _joined(shorter) not in taken:
            parts = shorter
    short = _joined(parts)
    if len(short) <= most:
        return short
    end = most // 2
    cuts = (f"{short[: most - 1 - end]}…{short[-end:]}", f"…{short[1 - most :]}", f"{short[: most - 1]}…")
    return next((cut for cut in cuts if cut not in taken), name)


def _joined(parts: Sequence[str]) -> str:
    """A path whose empty parts were left out: `…layers.0…linear1`."""
    return re.sub(r"\.?…[.…]*", "…", ".".join(part or "…" for part in parts))


LOG_STEPS = {0.7: (1, 1.5, 2, 3, 4, 5, 7), 1.5: (1, 2, 5), 3.0: (1, 3)}


class Scale(Protocol):
    def __call__(self, value: float) -> float: ...

    def ticks(self, most: int) -> list[float]: ...


@dataclass(frozen=True)
class Linear:
    low: float
    high: float
    start: float
    end: float
    whole: bool = False  # for counts

    def __call__(self, value: float) -> float:
        span = self.high - self.low or 1.0
        return self.start + (value - self.low) / span * (self.end - self.start)

    def ticks(self, most: int = 5) -> list[float]:
        span = self.high - self.low
        if span <= 0:
            return [self.low]
        rough = 10.0 ** math.floor(math.log10(span / most))
        step = next(rough * s for s in (1, 2, 2.5, 5, 10, 20) if span / (rough * s) <= most)
        step = float(max(1, math.ceil(step))) if self.whole else step
        first = math.ceil(self.low / step - 1e-9)
        return [i * step for i in range(first, math.floor(self.high / step + 1e-9) + 1)]


@dataclass(frozen=True)
class Log:
    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = math.log(max(value, 1e-300) / self.low) / math.log(self.high / self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 6) -> list[float]:
        """Round numbers, as many as there is room for."""
        decades = math.log10(self.high / self.low)
        steps = next((s for widest, s in LOG_STEPS.items() if decades <= widest), (1,))
        exponents = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        found = [s * 10.0**e for e in exponents for s in steps if self.low <= s * 10.0**e <= self.high]
        return found[:: max(1, math.ceil(len(found) / most))]


def around(values: Iterable[float], margin: float = 1.15) -> tuple[float, float]:
    """Bounds for a logarithmic scale that holds all positive values with some air."""
    positive = [v for v in values if v > 0 and math.isfinite(v)] or [1.0]
    return min(positive) / margin, max(positive) * margin


def whole(value: float) -> str:
    return f"{value:,.10g}"


def tick(value: float) -> str:
    """A number on an axis: three digits, never a power of ten."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


TICK, LABEL = 11.5, 12.0


@dataclass(frozen=True)
class Frame:
    """The rectangle in which data lies, in pixels, and its axes."""

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
        """The vertical axis; its label stands above the numbers, not turned."""
        marks: list[Mark] = []
        for tick in scale.ticks(most):
            y = scale(tick)
            if grid:
                marks.append(Line([(self.left, y), (self.right, y)], "faint"))
            marks.append(Text(self.left - 7, y + 4, words(tick), TICK, "muted", "end"))
        marks.append(Text(4, self.top - 12, label, LABEL, "muted"))
        return marks
