"""Above: the estimated surface with the test points. Below: how far each test is from it, and where was profiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .style import FAINT, INK, MUTED, OURS, Record, by, plain, unit_for


def draw(figure: Any, records: Sequence[Record]) -> None:
    columns = [(d, s, rows) for d, own in by(records, "device_title").items() for s, rows in by(own, "surface").items()]
    figure.set_size_inches(3.9 * len(columns) + 0.6, 7.6)
    for i, (device, size, rows) in enumerate(columns):
        kinds = by(rows, "what")
        above = figure.add_subplot(2, len(columns), i + 1, projection="3d")
        _surface(above, f"{device}, {size} pixels", kinds)
        below = figure.add_subplot(2, len(columns), len(columns) + i + 1)
        shown = _differences(below, kinds)
    figure.colorbar(shown, ax=below, label="estimate - test, of the test [%]", shrink=0.8)


def _surface(axes: Any, title: str, kinds: dict[str, list[Record]]) -> None:
    scale, unit = unit_for(r["estimate"] for r in kinds["surface"])
    x, y = (sorted({r[key] for r in kinds["surface"]}) for key in ("channels_in", "channels_out"))
    heights = {(r["channels_in"], r["channels_out"]): r["estimate"] / scale for r in kinds["surface"]}
    z = np.array([[heights[i, o] for i in x] for o in y])
    axes.plot_surface(*np.meshgrid(x, y), z, color=OURS, alpha=0.25, edgecolor=OURS, linewidth=0.25)
    for kind, mark, colour in (("profiled", "o", OURS), ("test", "x", "#c44536")):
        own = kinds.get(kind, [])
        places = [[r["channels_in"] for r in own], [r["channels_out"] for r in own]]
        axes.scatter(
            *places,
            [(r["joules"] if kind == "test" else r["estimate"]) / scale for r in own],
            marker=mark,
            s=14,
            color=colour,
        )
    axes.set_title(title, loc="left", color=INK, fontsize=10)
    axes.set_xlabel("channels in", fontsize=8)
    axes.set_ylabel("channels out", fontsize=8)
    axes.set_zlabel(unit, fontsize=8)
    axes.tick_params(labelsize=7)
    axes.view_init(24, -128)


def _differences(axes: Any, kinds: dict[str, list[Record]]) -> Any:
    seen = kinds.get("profiled", [])
    axes.scatter(
        [r["channels_in"] for r in seen],
        [r["channels_out"] for r in seen],
        s=22,
        color=FAINT,
        label="profiled",
        zorder=1,
    )
    tests = kinds.get("test", [])
    errors = [100 * (r["estimate"] / r["joules"] - 1) for r in tests]
    shown = axes.scatter(
        [r["channels_in"] for r in tests],
        [r["channels_out"] for r in tests],
        c=errors,
        cmap="RdBu_r",
        vmin=-15,
        vmax=15,
        s=34,
        edgecolors=MUTED,
        linewidths=0.5,
        label="test",
        zorder=2,
    )
    mean = sum(map(abs, errors)) / max(1, len(errors))
    plain(axes, f"tests (x above) are {mean:.1f} % off; grey: profiled", "channels in", "channels out")
    return shown
