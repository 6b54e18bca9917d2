"""How many measurements lie in intervals that claim to hold so many: on the diagonal is honest, above is modest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .style import INK, OURS, Record, by, device_panels, legend, plain


def draw(figure: Any, records: Sequence[Record]) -> None:
    for axes, title, rows in device_panels(figure, records, width=5.0, height=4.6):
        axes.plot([0, 100], [0, 100], color=INK, lw=0.8)
        for family, own in by(rows, "family").items():
            levels, covered = [100 * r["level"] for r in own], [100 * r["coverage"] for r in own]
            axes.plot(levels, covered, lw=1, alpha=0.6, label=family)
        pooled = [(level, _pooled(same)) for level, same in by(rows, "level").items()]
        axes.plot([100 * x for x, _ in pooled], [100 * y for _, y in pooled], "o-", color=OURS, lw=2, label="all")
        axes.set(xlim=(0, 100), ylim=(0, 102), aspect="equal")
        plain(axes, title, "the interval claims to hold [%]", "measurements in it [%]")
        legend(axes, loc="upper left")


def _pooled(rows: list[Record]) -> float:
    return float(sum(r["coverage"] * r["networks"] for r in rows) / sum(r["networks"] for r in rows))
