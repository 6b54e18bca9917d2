"""The picture of a search: accuracy against joules above, all candidates that were screened below."""

from __future__ import annotations

import textwrap
from itertools import pairwise
from pathlib import Path
from typing import Any

from ampere.core import units
from ampere.estimation.interval import Z90
from ampere.reporting.plotting import INK, MUTED, need_matplotlib, save_figure

from .result import Found, Trial

OURS, BEATEN, CHANCE, LIMIT, BARS = "#1f5fa8", "#a9b4c0", "#d9a441", "#c44536", "#d5dde6"


def draw(found: Found, path: Path) -> None:
    need_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 5.6), layout="constrained")
    FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
    scale, unit = units.joules_unit(found.budget_joules)
    _draw_trials(above, found, scale)
    _draw_screened(below, found, scale)
    _label(figure, above, below, found, unit)
    save_figure(figure, path, dpi=160)


def _draw_trials(axes: Any, found: Found, scale: float) -> None:
    best = found.front
    trained = [t for t in found.trials if t.accuracy is not None]
    beaten = [t for t in trained if t not in best and not t.at_chance]
    _marks(axes, beaten, scale, BEATEN, "trained, beaten by another")
    _marks(axes, [t for t in trained if t.at_chance], scale, CHANCE, "at chance level")
    x, y = [t.candidate.joules / scale for t in best], [100 * (t.accuracy or 0.0) for t in best]
    axes.step(x, y, where="post", color=OURS, linewidth=1.2, alpha=0.5, zorder=2)
    _marks(axes, list(best), scale, OURS, "the front")
    axes.axvline(found.budget_joules / scale, color=LIMIT, linewidth=1.2, zorder=1)
    axes.annotate(
        "budget",
        (found.budget_joules / scale, 0.02),
        xycoords=("data", "axes fraction"),
        xytext=(-5, 2),
        textcoords="offset points",
        ha="right",
        color=LIMIT,
        fontsize=9,
    )
    axes.grid(color="#eeeeee", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize=9, labelcolor=INK, loc="upper left")
    accuracies = [100 * (t.accuracy or 0.0) for t in trained]
    low, high = min(accuracies), max(accuracies)
    axes.set_ylim(max(0, low - 0.08 * (high - low) - 1), min(101, high + 0.22 * (high - low) + 2))


def _marks(axes: Any, trials: list[Trial], scale: float, colour: str, label: str) -> None:
    if not trials:
        return
    axes.errorbar(
        [t.candidate.joules / scale for t in trials],
        [100 * (t.accuracy or 0.0) for t in trials],
        xerr=[Z90 * t.candidate.stddev / scale for t in trials],
        fmt="o",
        markersize=6.5,
        color=colour,
        ecolor=colour,
        elinewidth=1,
        markeredgecolor="white",
        label=label,
        zorder=3,
    )


def _draw_screened(axes: Any, found: Found, scale: float) -> None:
    edges, counts = found.spread
    left = [edge / scale for edge in edges]
    widths = [b - a for a, b in pairwise(left)]
    colours = [BARS if a >= found.budget_joules else "#8fb3d9" for a in edges[:-1]]
    axes.bar(left[:-1], counts, widths, align="edge", color=colours)
    axes.axvline(found.budget_joules / scale, color=LIMIT, linewidth=1.2)
    axes.set_xscale("log")
    shown = [c.joules / scale for c in found.chosen]
    axes.set_xlim(
        0.7 * min(shown), min(max(left[-1], 1.3 * found.budget_joules / scale), 4 * found.budget_joules / scale)
    )
    axes.set_yticks([])


def _label(figure: Any, above: Any, below: Any, found: Found, unit: str) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(colors=INK, labelsize=9)
    below.spines["left"].set_visible(False)
    below.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    below.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    below.xaxis.set_minor_formatter(NullFormatter())
    above.set_ylabel("accuracy after a short training [%]", color=INK, fontsize=9)
    below.set_ylabel(f"{found.screened:,}\nscreened", color=MUTED, fontsize=8, rotation=0, ha="right", va="center")
    meter = found.meter
    origin = "simulated" if meter.simulated else "measured" if meter.measured else "modelled"
    below.set_xlabel(
        f"estimated joules of {found.examples} examples [{unit}], 90 % interval ({origin}: {meter.name})",
        color=INK,
        fontsize=9,
    )
    title = (
        f"{found.space} on {found.device}: {len(found.trials)} of {found.inside:,} candidates inside the budget trained"
    )
    above.set_title(textwrap.fill(title, 78), loc="left", color=INK, fontsize=11)
    figure.supxlabel(f"accuracy: {found.trained_with}, one seed", x=0.99, ha="right", color=MUTED, fontsize=7.5)
