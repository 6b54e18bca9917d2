"""How many networks are estimated within an error: nearer to the upper left is better; one line a depth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .style import Record, by, colour_of, device_panels, label_of, plain, shared_legend

SHOWN = ("additive", "flops_intercept")
STYLES = ("-", "--", ":")


def draw(figure: Any, records: Sequence[Record]) -> None:
    for axes, title, rows in device_panels(figure, records, width=4.0, height=3.8):
        largest = 0.0
        for method in SHOWN:
            for style, (depth, own) in zip(STYLES, by(rows, "depth").items(), strict=False):
                errors = sorted(100 * abs(r["estimates"][method] / r["joules"] - 1) for r in own)
                largest = max(largest, errors[-1])
                shares = [100 * (i + 1) / len(errors) for i in range(len(errors))]
                label = f"{label_of(method)}, {depth} layers"
                axes.step(
                    [0, *errors, 1e3], [0, *shares, 100], style, where="post", color=colour_of(method), label=label
                )
        axes.set(xlim=(0, min(80.0, 1.05 * largest)), ylim=(0, 102))
        plain(axes, title, "error at most [%]", "networks [%]")
    shared_legend(figure)
