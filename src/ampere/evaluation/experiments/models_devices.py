"""Mean error of every method, by family and by device: the paper's main result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ampere.evaluation.comparing import with_baselines
from ampere.evaluation.drawing import colour_of, device_panels, look_of, shared_legend
from ampere.evaluation.jobs import Record, baselines_of, needs, trials_of
from ampere.evaluation.session import Session
from ampere.reporting.plotting import INK, label_axes
from ampere.reporting.words import method_name

TITLE = "mean error by model and device"
FIGURE = "Fig. 8"

jobs = needs(
    lambda plan: [trials_of(plan, device, family) for device in plan.all_devices for family in plan.families(device)],
    baselines_of,
)


def records(session: Session) -> Iterator[Record]:
    for device in session.plan.all_devices:
        for family in session.plan.families(device):
            comparison = with_baselines(session, device, family)
            yield {
                **comparison.of,
                "networks": len(comparison.trials),
                "mape": comparison.mape,
                "mape_stderr": comparison.mape_stderr,
                "repeatability": comparison.repeatability,
                "coverage90": comparison.coverage(),
                "profiling_seconds": comparison.profiling_seconds,
            }


SHOWN = ("additive", "sequential", "flops_intercept", "flops")
GROUP = 0.82  # of the room between two families that its bars fill
LETTERS: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "fontsize": 6.5, "zorder": 5}


def draw(figure: Any, records: Sequence[Record]) -> None:
    """Bars of the mean error by family, one panel per device; whiskers: its standard error; lines: the noise."""
    for axes, title, rows in device_panels(figure, records, columns=1, width=7.6, height=2.4):
        methods = [m for m in SHOWN if any(m in r["mape"] for r in rows)]
        width, top = GROUP / len(methods), 0.0
        for i, method in enumerate(methods):
            found = [(x, r) for x, r in enumerate(rows) if method in r["mape"]]
            places = [x + (i - (len(methods) - 1) / 2) * width for x, _ in found]
            values = [100 * r["mape"][method] for _, r in found]
            errors = [100 * r["mape_stderr"][method] for _, r in found]
            look = {"color": colour_of(method), "hatch": look_of(method).hatch, "edgecolor": "white", "linewidth": 0.3}
            axes.bar(places, values, width, label=method_name(method), zorder=2, **look)
            axes.errorbar(places, values, yerr=errors, fmt="none", ecolor=INK, elinewidth=0.8, capsize=1.5, zorder=3)
            for x, value, error in zip(places, values, errors, strict=True):
                spot = (x, value + error)
                axes.annotate(f"{value:.0f}" if value >= 10 else f"{value:.1f}", spot, (0, 2), **LETTERS)
                top = max(top, value + error)
        for x, row in enumerate(rows):
            line = [x - GROUP / 2, x + GROUP / 2], [100 * row["repeatability"]] * 2
            axes.plot(*line, color=INK, lw=1.2, zorder=4, label="measured a second time" if x == 0 else "_")
        axes.set(ylim=(0, 1.12 * top), xlim=(-0.5, len(rows) - 0.5))
        axes.set_xticks(range(len(rows)), [r["family"] for r in rows])
        label_axes(axes, title, "", "mean error (MAPE) [%]")
    shared_legend(figure)
