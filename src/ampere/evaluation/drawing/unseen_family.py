"""A table in colours: the family that was profiled down the side, the family that was tested along the top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .style import Record, device_panels, plain


def draw(figure: Any, records: Sequence[Record]) -> None:
    for axes, title, rows in device_panels(figure, records, width=5.6, height=4.8):
        families = list(dict.fromkeys(r["profiled"] for r in rows))
        errors = {(r["profiled"], r["tested"]): 100 * r["mape"] for r in rows}
        values = np.array([[errors[p, t] for t in families] for p in families])
        axes.imshow(np.log10(np.maximum(values, 0.5)), cmap="Blues", vmin=-0.3, vmax=2.2)
        for (i, j), value in np.ndenumerate(values):
            colour = "white" if value > 25 else "black"
            axes.text(j, i, f"{value:.1f}" if value < 10 else f"{value:.0f}", ha="center", va="center", color=colour)
        axes.set_xticks(range(len(families)), families, rotation=30)
        axes.set_yticks(range(len(families)), families)
        plain(axes, f"{title}: mean error [%]", "networks tested", "networks profiled")
        axes.spines[:].set_visible(False)
