"""Mean error of every method by family, one panel a device; the short black lines are the noise of measuring."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .dots import dots, floor
from .style import Record, device_panels, shared_legend


def draw(figure: Any, records: Sequence[Record]) -> None:
    for axes, title, rows in device_panels(figure, records, columns=2, width=5.6, height=3.3):
        errors = {r["family"]: {m: 100 * e for m, e in r["mape"].items()} for r in rows}
        dots(axes, errors, "mean error [%]", title)
        for x, row in enumerate(rows):
            floor(axes, x, 100 * row["repeatability"])
    shared_legend(figure)
