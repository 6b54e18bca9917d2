"""Joules over the number of stacked layers: a line if layers add up, and the sum of layers profiled alone above it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .style import FAINT, OURS, Record, colour_of, device_panels, legend, plain, unit_for


def draw(figure: Any, records: Sequence[Record]) -> None:
    for axes, title, rows in device_panels(figure, records, width=5.4, height=4.0):
        scale, unit = unit_for(r["joules"] for r in rows)
        x = [r["hidden_layers"] for r in rows]
        axes.plot(x, [r["line_joules"] / scale for r in rows], color=FAINT, lw=4, label="straight line", zorder=1)
        axes.plot(x, [r["joules"] / scale for r in rows], "o", color=OURS, ms=6, label="trained", zorder=3)
        alone = [(r["hidden_layers"], r["neuralpower_joules"]) for r in rows if r["neuralpower_joules"] is not None]
        if alone:
            over = sum(a / r["joules"] for (_, a), r in zip(alone, rows, strict=False)) / len(alone)
            axes.plot(
                [d for d, _ in alone],
                [j / scale for _, j in alone],
                "^--",
                color=colour_of("neuralpower"),
                lw=1,
                label=f"stages of lone layers, summed ({over:.2f}x)",
            )
        axes.set_ylim(bottom=0)
        plain(axes, title, "identical convolutions between input and output layer", f"energy an iteration [{unit}]")
        legend(axes, loc="lower right")
