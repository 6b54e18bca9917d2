"""Pictures of results. Matplotlib is an extra: it is looked for before the work that would be drawn begins."""

from __future__ import annotations

import importlib.util
import math
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampere.core.errors import RuntimeMissingError
from ampere.storage.files import storing

if TYPE_CHECKING:
    from ampere.evaluation.validation import Validation

# Blue and orange that are told apart by everyone, also in grey. Ours is drawn last, on top.
STYLES = {
    "flops_intercept": {"label": "FLOPs and a constant", "color": "#d9822b", "marker": "^", "s": 34},
    "additive": {"label": "Ampere", "color": "#1f5fa8", "marker": "o", "s": 38},
}
INK, MUTED, FAINT = "#333333", "#777777", "#e4e4e4"
BAND = 1.10
UNITS = ((1e3, "kJ"), (1.0, "J"), (1e-3, "mJ"), (1e-6, "µJ"))
STEPS = {0.7: (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9), 1.3: (1, 1.5, 2, 3, 5, 7), 3.0: (1, 2, 5)}


def can_plot() -> bool:
    return importlib.util.find_spec("matplotlib") is not None


def need_matplotlib() -> None:
    if not can_plot():
        raise RuntimeMissingError("drawing needs matplotlib: pip install 'ampere-energy[plot]'")


def scatter(validation: Validation, path: Path) -> None:
    """Estimated against measured joules, one mark a network and method."""
    need_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 6.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    scale, unit = _unit(validation)
    _draw_axes(axes, *_limits(validation, scale))
    for method, style in STYLES.items():
        _draw_method(axes, validation, method, style, scale)
    _label(axes, validation, unit)
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=160)


def _unit(validation: Validation) -> tuple[float, str]:
    middle = sorted(row.actual for row in validation.rows)[len(validation.rows) // 2]
    return next(((scale, unit) for scale, unit in UNITS if middle >= scale), UNITS[-1])


def _limits(validation: Validation, scale: float) -> tuple[float, float]:
    values = [v / scale for r in validation.rows for v in (r.actual, *(r.estimates[m] for m in STYLES)) if v > 0]
    margin = max(1.08, (max(values) / min(values)) ** 0.08)
    return min(values) / margin, max(values) * margin


def _draw_axes(axes: Any, low: float, high: float) -> None:
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), aspect="equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(_ticks(low, high), labels=[f"{t:g}" for t in _ticks(low, high)])
        axis.set_ticks([], minor=True)
    axes.fill_between([low, high], [low / BAND, high / BAND], [low * BAND, high * BAND], color=FAINT, lw=0, zorder=0)
    axes.plot([low, high], [low, high], color=INK, linewidth=1, zorder=1)
    axes.tick_params(colors=INK)
    axes.spines[["top", "right"]].set_visible(False)


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers, as many as there is room for."""
    decades = math.log10(high / low)
    steps = next((s for widest, s in STEPS.items() if decades <= widest), (1,))
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [step * 10.0**e for e in exponents for step in steps if low <= step * 10.0**e <= high]


def _draw_method(axes: Any, validation: Validation, method: str, style: dict[str, Any], scale: float) -> None:
    style = {**style, "label": f"{style['label']}: {100 * validation.mape[method]:.1f} %"}
    measured = [row.actual / scale for row in validation.rows]
    estimated = [row.estimates[method] / scale for row in validation.rows]
    axes.scatter(measured, estimated, **style, alpha=0.85, linewidths=0.5, edgecolors="white", zorder=3)


def _label(axes: Any, validation: Validation, unit: str) -> None:
    meter = validation.meter
    sort = "simulated " if meter.simulated else "" if meter.measured else "modelled "
    what = f"{'replayed ' if meter.replayed else ''}{sort}joules"
    trained = "simulated training" if meter.simulated else "real training"
    axes.set_xlabel(f"{trained}: {what} per iteration [{unit}]", color=INK)
    axes.set_ylabel(f"estimate: {what} per iteration [{unit}]", color=INK)
    title = f"{validation.model}: {len(validation.rows)} networks that were not profiled, {validation.device}"
    axes.set_title(textwrap.fill(title, 66), loc="left", color=INK, fontsize=11)
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(
        handles[::-1], labels[::-1], title="mean error (MAPE)", loc="upper left", frameon=False, alignment="left"
    )
    again = f"measured a second time: {100 * validation.repeatability_mape:.1f} % apart; grey: within 10 %"
    origin = f"{validation.meter.name}, {validation.meter.scope}\n{again}"
    axes.text(0.99, 0.01, origin, transform=axes.transAxes, ha="right", va="bottom", fontsize=8, color=MUTED)
