"""Methods as dots over families, on a logarithmic axis: small errors are as visible as large ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .style import INK, colour_of, in_order, label_of, plain

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
