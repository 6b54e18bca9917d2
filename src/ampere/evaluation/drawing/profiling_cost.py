"""Seconds of profiling by family and device, with the paper's as open marks where it has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .style import MUTED, OURS, Record, by, plain


def draw(figure: Any, records: Sequence[Record]) -> None:
    devices = by(records, "device_title")
    figure.set_size_inches(8.0, 1.4 + 0.19 * len(records))
    axes = figure.add_subplot()
    places, labels = [], []
    at = 0.0
    for device, rows in devices.items():
        for row in rows:
            axes.plot([row["seconds"]], [at], "o", color=OURS, label="Ampere" if at == 0 else "_")
            axes.annotate(
                f"{row['measurements']}", (row["seconds"], at), (6, -3), textcoords="offset points", fontsize=7
            )
            if row["paper_seconds"]:
                axes.plot([row["paper_seconds"]], [at], "o", mfc="none", color=MUTED, label="the paper, real device")
            places.append(at)
            labels.append(f"{row['family']}   {device if row is rows[0] else ''}")
            at -= 1.0
        at -= 0.6
    axes.set_xscale("log")
    axes.set_xlim(1, 10_000)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_yticks(places, labels)
    plain(axes, "", "seconds of profiling on the device (beside a mark: networks trained)", "")
    handles, names = axes.get_legend_handles_labels()
    unique = dict(zip(names, handles, strict=True))
    axes.legend(unique.values(), unique.keys(), frameon=False, fontsize=8)
