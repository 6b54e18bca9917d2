"""How all pictures of the evaluation look: one colour and one name a method, little ink, a word about the joules."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
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


# Methods as dots over families, on a logarithmic axis: small errors are as visible as large ones.

SPREAD = 0.5  # of the room between two families, over which a family's dots are spread


def dots(axes: Any, columns: Mapping[str, Mapping[str, float]], y: str, title: str) -> list[str]:
    """`columns`: family -> method -> value. Returns the methods drawn."""
    methods = in_order({method for column in columns.values() for method in column})
    for i, method in enumerate(methods):
        found = [(x, column[method]) for x, column in enumerate(columns.values()) if method in column]
        apart = SPREAD * (i / max(1, len(methods) - 1) - 0.5)
        ours = method == "additive"
        axes.plot(
            [x + apart for x, _ in found],
            [value for _, value in found],
            "o",
            ms=8 if ours else 5.5,
            color=colour_of(method),
            label=label_of(method),
            zorder=4 if ours else 3,
        )
    for x in range(1, len(columns)):
        axes.axvline(x - 0.5, color="#eeeeee", lw=0.8, zorder=0)
    axes.set(yscale="log", xlim=(-0.5, len(columns) - 0.5))
    axes.set_xticks(range(len(columns)), list(columns))
    percents(axes)
    plain(axes, title, "", y)
    return methods


def percents(axes: Any) -> None:
    """1, 2, 5, 10, ... where a logarithmic axis would write powers of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())


def floor(axes: Any, x: int, value: float) -> None:
    axes.plot([x - 0.42, x + 0.42], [value, value], color=INK, lw=1.2, zorder=2)
