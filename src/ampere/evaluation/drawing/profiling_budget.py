"""Mean error over the seconds that profiling took, one line a method, with the noise of measuring below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .style import INK, Record, by, colour_of, device_panels, in_order, label_of, plain, shared_legend


def draw(figure: Any, records: Sequence[Record]) -> None:
    for axes, title, rows in device_panels(figure, records, width=5.0, height=4.2):
        groups = by(rows, "method")
        for method in in_order(groups):
            own = sorted(groups[method], key=lambda r: r["profiling_seconds"])
            x, y = [r["profiling_seconds"] for r in own], [100 * r["mape"] for r in own]
            axes.plot(x, y, "o-", ms=5, lw=1.4, color=colour_of(method), label=label_of(method))
        axes.axhline(100 * rows[0]["repeatability"], color=INK, lw=0.8, ls=":", label="measured a second time")
        axes.set(xscale="log", yscale="log")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter("{x:g}")
        axes.tick_params(which="minor", labelsize=7)
        plain(axes, f"{title}, 5-layer CNNs", "seconds of profiling", "mean error [%]")
    shared_legend(figure)
