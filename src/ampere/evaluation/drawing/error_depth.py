"""Signed errors over the number of layers, one panel a family: a slope would be a bias that each layer adds to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .style import INK, Record, by, colour_of, label_of, legend, panels, plain

SHOWN = ("flops_intercept", "additive")


def draw(figure: Any, records: Sequence[Record]) -> None:
    groups = {(d, f): own for d, rows in by(records, "device_title").items() for f, own in by(rows, "family").items()}
    for axes, ((device, family), rows) in zip(panels(figure, len(groups)), groups.items(), strict=True):
        axes.axhline(0, color=INK, lw=0.8)
        for method in SHOWN:
            errors = [100 * r["errors"][method] for r in rows]
            axes.scatter([r["layers"] for r in rows], errors, s=15, color=colour_of(method), label=label_of(method))
        axes.locator_params(axis="x", integer=True)
        plain(axes, f"{family} on {device}", "layers", "error [%]")
    legend(axes, loc="best", reverse=True)
