"""The one style of all PNG and SVG pictures that matplotlib draws, and a report's charts in it.

Matplotlib is an extra: `need_matplotlib` is called before the work that would be drawn begins.
"""

from __future__ import annotations

import importlib.util
import math
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from ampere.core import units
from ampere.core.errors import RuntimeMissingError
from ampere.storage.files import storing, write_whole

from .charts import BAND, Bars, Curve, Heatmap, Histogram, Scatter, Shares, edges
from .colours import LIGHT
from .record import Chart
from .svg import shown

INK, MUTED, FAINT, BLUE, ORANGE = (LIGHT[role] for role in ("ink", "muted", "faint", "one", "two"))
STYLE: dict[Any, Any] = {
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "font.size": 9,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "pdf.fonttype": 42,  # letters that can be searched and edited, as journals ask for
    "savefig.dpi": 150,
    "svg.fonttype": "none",
    "text.color": INK,
    "text.parse_math": False,  # a model's name may hold a dollar sign
    "xtick.color": INK,
    "ytick.color": INK,
}
TITLE_CHARACTERS, NOTE_CHARACTERS = 12, 18  # that fit into an inch
NOTE_INCHES = 0.13  # of a line
MARKERS = {"circle": "o", "square": "s", "triangle": "^", "diamond": "D"}
FULL, HALF = 8.6, 4.8  # inches
BAR_INCHES = 0.26
LONGEST_NAME = 60  # characters
LOG_STEPS = {0.7: (1, 1.5, 2, 3, 4, 5, 7), 1.5: (1, 2, 5), 3.0: (1, 3)}  # by decades of an axis
# Cividis in ten steps.
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


def can_plot() -> bool:
    return importlib.util.find_spec("matplotlib") is not None


def need_matplotlib() -> None:
    if not can_plot():
        raise RuntimeMissingError("drawing needs matplotlib: pip install 'ampere-energy[plot]'")


@contextmanager
def picture(paths: Sequence[Path], title: str, note: str, size: tuple[float, float] = (7.2, 5.6)) -> Iterator[Any]:
    """A figure to draw into, saved to all paths with a title and, below, a note that says whose joules these are."""
    need_matplotlib()
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        yield figure
        width = figure.get_size_inches()[0]
        figure.suptitle(_wrapped(title, TITLE_CHARACTERS * width), x=0.01, ha="left", fontsize=11)
        _add_note(figure, _wrapped(note, NOTE_CHARACTERS * width))
        for path in paths:
            save_figure(figure, path)


def _add_note(figure: Any, note: str) -> None:
    """A note below everything else; legends of the whole figure stand between it and the panels."""
    width, height = figure.get_size_inches()
    below = NOTE_INCHES * (1 + note.count("\n")) + 0.06
    extents = [legend.get_window_extent(figure.canvas.get_renderer()) for legend in figure.legends]
    between = max((extent.height / figure.dpi for extent in extents), default=0.0)
    total = height + below + between
    figure.set_size_inches(width, total)
    figure.get_layout_engine().set(rect=(0, (below + between) / total, 1, height / total))
    for legend in figure.legends:
        legend.set_in_layout(False)
        legend.set_bbox_to_anchor((0, below / total, 1, height / total), transform=figure.transFigure)
    figure.text(0.01, 0.03 / total, note, va="bottom", color=MUTED, fontsize=7).set_in_layout(False)


def save_figure(figure: Any, path: Path, **settings: Any) -> None:
    """Writes a figure in the format that the file's name ends with: as a whole, or not at all."""
    drawn = BytesIO()
    with storing(path):  # an unknown format
        figure.savefig(drawn, format=path.suffix[1:] or None, **settings)
    write_whole(path, drawn.getvalue())


def _wrapped(words: str, characters: float) -> str:
    lines = [textwrap.wrap(shown(line), max(20, int(characters))) for line in words.splitlines()]
    return "\n".join(part for line in lines for part in line)


def _name(words: str) -> str:
    """A name that a model or a file gave, as there is room for it."""
    fit = shown(words)
    return fit if len(fit) <= LONGEST_NAME else f"{fit[: LONGEST_NAME // 2]}…{fit[-LONGEST_NAME // 2 :]}"


def label_axes(axes: Any, title: str = "", x: str = "", y: str = "") -> None:
    axes.set(title=title, xlabel=x, ylabel=y)


def save_chart(chart: Chart, path: Path) -> None:
    """A chart of a report as a picture of its own, PNG or SVG."""
    width = FULL if chart.full else HALF
    size, draw = DRAWERS[type(chart.plot)]
    with picture([path], chart.title, chart.caption, (width, size(chart.plot, width))) as figure:
        draw(figure.add_subplot(), chart.plot)


def _bars(axes: Any, plot: Bars) -> None:
    rows = range(len(plot.bars))
    colours = [LIGHT[b.colour] for b in plot.bars]
    drawn = axes.barh(rows, [b.value for b in plot.bars], height=0.62, color=colours)
    for i, (bar, patch) in enumerate(zip(plot.bars, drawn, strict=True)):
        patch.set_alpha(0.35 if bar.hollow else 1.0)
        left = 0.0
        for colour, value in bar.parts:
            axes.barh([i], [value], left=left, height=0.62, color=LIGHT[colour])
            left += value
        if bar.low is not None and bar.high is not None:
            span = [[bar.value - max(bar.low, 0.0)], [bar.high - bar.value]]
            axes.errorbar([bar.value], [i], xerr=span, color=INK, capsize=2.5, lw=1.1)
        end = max(bar.value, bar.high or 0.0)
        axes.annotate(bar.label, (end, i), (5, 0), textcoords="offset points", va="center", fontsize=8.5)
    if plot.reference:
        axes.axvline(plot.reference.value, color=INK, lw=1.1)
        axes.set_title(plot.reference.label, fontsize=8.5)
    axes.set_yticks(rows, [f"{_name(b.name)}   {b.detail}".strip() for b in plot.bars])
    axes.invert_yaxis()
    axes.margins(x=0.16, y=0.02)
    axes.set_xlim(left=0)
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(left=False, bottom=False, labelbottom=False)


def _shares(axes: Any, plot: Shares) -> None:
    left = 0.0
    for s in plot.shares:
        axes.barh(
            [0], [s.share], left=left, color=LIGHT.get(s.colour, s.colour), label=f"{s.name} {s.label}", ec="white"
        )
        left += s.share
    axes.set_axis_off()
    axes.set_xlim(0, max(left, 1e-9))
    axes.legend(loc="upper left", bbox_to_anchor=(0, 0), ncols=3)


def _histogram(axes: Any, plot: Histogram) -> None:
    axes.stairs(plot.counts, plot.edges, fill=True, color=BLUE)
    axes.axvline(min(plot.median, plot.edges[-1]), color=INK, lw=1, ls="--", label=plot.note)
    axes.xaxis.set_major_formatter(lambda value, _: units.percent(value))
    axes.locator_params(axis="y", integer=True)
    axes.legend(loc="upper right")
    label_axes(axes, "", plot.label, plot.things)


def _scatter(axes: Any, plot: Scatter) -> None:
    low, high = plot.bounds
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), aspect="equal")
    axes.fill_between([low, high], [low / BAND, high / BAND], [low * BAND, high * BAND], color=FAINT, lw=0, zorder=0)
    axes.plot([low, high], [low, high], color=MUTED, lw=1, zorder=1)
    for s in plot.series:
        x, y = [spot.measured for spot in s.spots], [spot.estimated for spot in s.spots]
        look = {"color": LIGHT[s.colour], "marker": MARKERS[s.shape], "edgecolors": "white", "linewidths": 0.4}
        axes.scatter(x, y, s=24, label=_name(s.label), zorder=3, **look)
    axes.legend(loc="upper left", reverse=True)
    for axis in (axes.xaxis, axes.yaxis):
        _round_ticks(axis, low, high, plot.unit_joules)
    label_axes(axes, "", f"measured, {plot.unit} (grey: within 10 %)", f"estimated, {plot.unit}")


def _round_ticks(axis: Any, low: float, high: float, unit_joules: float, most: int = 7) -> None:
    """Labels an axis with round numbers, never with powers of ten."""
    low, high = low / unit_joules, high / unit_joules
    decades = math.log10(high / low)
    steps = next((s for widest, s in LOG_STEPS.items() if decades <= widest), (1,))
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = [s * 10.0**e for e in exponents for s in steps if low <= s * 10.0**e <= high]
    values = found[:: max(1, math.ceil(len(found) / most))]
    words = [f"{value:,.0f}" if value >= 100 else f"{value:.3g}" for value in values]
    axis.set_ticks([value * unit_joules for value in values], words)
    axis.set_ticks([], minor=True)


def _heatmap(axes: Any, plot: Heatmap) -> None:
    from matplotlib.colors import ListedColormap, LogNorm

    unit_joules, unit = plot.unit
    low, high = plot.bounds
    values = [[value / unit_joules for value in row] for row in plot.values]
    look = {"cmap": ListedColormap(RAMP), "norm": LogNorm(low / unit_joules, high / unit_joules)}
    mesh = axes.pcolormesh(edges(plot.xs), edges(plot.ys), values, **look)
    bar = axes.figure.colorbar(mesh, ax=axes, label=unit, shrink=0.9)
    _round_ticks(bar.ax.yaxis, low / unit_joules, high / unit_joules, 1.0)
    for alone, size, face, edge in ((False, 12, "black", "white"), (True, 24, "white", "black")):
        found = [s for s in plot.seen if s.alone == alone]
        axes.scatter([s.x for s in found], [s.y for s in found], s=size, c=face, edgecolors=edge, linewidths=0.6)
    label_axes(axes, "", "channels in", "channels out")


def _curve(axes: Any, plot: Curve) -> None:
    unit_joules, unit = plot.unit
    lows, highs = [max(v, 0.0) / unit_joules for v in plot.lows], [v / unit_joules for v in plot.highs]
    axes.fill_between(plot.xs, lows, highs, color=BLUE, alpha=0.22, lw=0)
    axes.plot(plot.xs, [v / unit_joules for v in plot.values], color=BLUE, lw=1.8)
    alone = [s for s in plot.seen if s.alone]
    axes.scatter([s.x for s in alone], [s.y / unit_joules for s in alone], s=24, c="white", edgecolors=INK, zorder=3)
    axes.vlines([s.x for s in plot.seen if not s.alone], 0, 0.03 * plot.top / unit_joules, color=INK, lw=1.2)
    axes.set_ylim(0, plot.top / unit_joules)
    label_axes(axes, "", plot.label, f"energy, {unit}")


Height = Callable[[Any, float], float]  # inches of a plot of so many inches width
Draw = Callable[[Any, Any], None]
DRAWERS: dict[type, tuple[Height, Draw]] = {
    Bars: (lambda plot, width: BAR_INCHES * len(plot.bars) + 1.2, _bars),
    Shares: (lambda plot, width: 1.9, _shares),
    Histogram: (lambda plot, width: 0.72 * width, _histogram),
    Scatter: (lambda plot, width: 1.14 * width, _scatter),
    Heatmap: (lambda plot, width: 0.86 * width, _heatmap),
    Curve: (lambda plot, width: 0.86 * width, _curve),
}
