"""How all pictures of the evaluation look: one colour and one name a method, little ink, a word about the joules."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

Record = dict[str, Any]

INK, MUTED, FAINT, OURS, THEIRS = "#333333", "#777777", "#e4e4e4", "#1f5fa8", "#d9822b"

# Told apart by everyone, also in grey: ours is the darkest.
METHODS: dict[str, tuple[str, str]] = {
    "additive": ("Ampere", OURS),
    "sequential": ("sequential (the paper's)", "#2a9d8f"),
    "sequential_wallclock": ("sequential, wall clock", "#86cfc5"),
    "physics": ("least squares on physics", "#7b5ea7"),
    "kernels": ("kernel regression", "#b35c8e"),
    "neuralpower": ("NeuralPower", "#c44536"),
    "roofline": ("roofline", "#8a6d3b"),
    "flops_intercept": ("FLOPs and a constant", THEIRS),
    "flops": ("FLOPs", "#f2b134"),
    "parameters": ("parameters", "#999999"),
    "layers": ("number of layers", "#bbbbbb"),
}
LEGEND_INCHES = 2.0
JOULES = ((1e3, "kJ"), (1.0, "J"), (1e-3, "mJ"), (1e-6, "µJ"))


def label_of(method: str) -> str:
    return METHODS.get(method, (method.replace("_", " "), ""))[0]


def colour_of(method: str) -> str:
    return METHODS.get(method, ("", MUTED))[1]


def in_order(methods: Iterable[str]) -> list[str]:
    known = list(METHODS)
    return sorted(methods, key=lambda m: known.index(m) if m in known else len(known))


def unit_for(values: Iterable[float]) -> tuple[float, str]:
    middle = sorted(values)
    typical = middle[len(middle) // 2] if middle else 1.0
    return next(((scale, unit) for scale, unit in JOULES if typical >= scale), JOULES[-1])


def plain(axes: Any, title: str = "", x: str = "", y: str = "") -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK, labelsize=9)
    axes.set_title(title, loc="left", color=INK, fontsize=10)
    axes.set_xlabel(x, color=INK, fontsize=9)
    axes.set_ylabel(y, color=INK, fontsize=9)


def legend(axes: Any, **where: Any) -> None:
    axes.legend(frameon=False, fontsize=8, labelcolor=INK, **where)


def shared_legend(figure: Any) -> None:
    """Beside all panels, each name once."""
    found = {
        label: handle for axes in figure.axes for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.set_size_inches(figure.get_size_inches()[0] + LEGEND_INCHES, figure.get_size_inches()[1])
    figure.legend(found.values(), found.keys(), loc="outside right center", frameon=False, fontsize=8, labelcolor=INK)


def by(records: Iterable[Record], key: str) -> dict[Any, list[Record]]:
    """In order of first sight."""
    groups: dict[Any, list[Record]] = {}
    for record in records:
        groups.setdefault(record[key], []).append(record)
    return groups


def panels(figure: Any, count: int, columns: int = 3, width: float = 4.4, height: float = 3.6) -> list[Any]:
    """As many axes as asked for, in rows."""
    columns = min(count, columns)
    rows = math.ceil(count / columns)
    figure.set_size_inches(max(5.2, width * columns), height * rows + 0.4)
    return [figure.add_subplot(rows, columns, i + 1) for i in range(count)]


def device_panels(figure: Any, records: Sequence[Record], **size: Any) -> list[tuple[Any, str, list[Record]]]:
    """One a device, each with the device's name, which says so where it is simulated."""
    groups = by(records, "device_title")
    return list(zip(panels(figure, len(groups), **size), groups, groups.values(), strict=True))
