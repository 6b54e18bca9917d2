"""What the evaluation's pictures share: a colour for each method, panels for devices, dots over families."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from ampere.baselines.answers import measured_for
from ampere.core.units import joules_unit
from ampere.reporting.plotting import FAINT, INK, MUTED, label_axes
from ampere.reporting.words import method_name

from .jobs import Record


class Look(NamedTuple):
    """How a method is drawn, the same in every picture."""

    colour: str
    marker: str
    hatch: str = ""


# Colours that colour-blind readers can tell apart (Okabe and Ito's and darker ones), and shapes for print in grey.
LOOKS = {
    "additive": Look("#0072b2", "o"),
    "sequential": Look("#d55e00", "s", "///"),
    "sequential_wallclock": Look("#e69f00", "D", "xxx"),
    "physics": Look("#6a4c93", "P"),
    "kernels": Look("#8c564b", "p"),
    "neuralpower": Look("#cc79a7", "X"),
    "roofline": Look("#b09a00", "<"),
    "flops_intercept": Look("#009e73", "^", "..."),
    "flops": Look("#56b4e9", "v"),
    "parameters": Look("#777777", "d"),
    "layers": Look("#aaaaaa", ">"),
}
OTHER = Look(MUTED, "h")
LEGEND_INCHES = 1.9  # of a name, at least
DECADES = 300.0  # factor between the ends of an axis above which three marks a decade do not fit
SPREAD = 0.5  # of the room between two families, over which a family's dots are spread
BAND = 1.1  # estimates within a tenth of the measurement


def look_of(method: str) -> Look:
    return LOOKS.get(method, OTHER)


def colour_of(method: str) -> str:
    return look_of(method).colour


def in_order(methods: Iterable[str]) -> list[str]:
    known = list(LOOKS)
    return sorted(methods, key=lambda m: known.index(m) if m in known else len(known))


def unit_for(joules: Iterable[float]) -> tuple[float, str]:
    """The unit that suits most of the values, and how many joules it is."""
    return joules_unit(median(list(joules) or [1.0]))


def shared_legend(figure: Any) -> None:
    """One legend below all panels, each name once, methods first."""
    found = {
        label: handle for axes in figure.axes for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    methods = [name for name in map(method_name, LOOKS) if name in found]
    names = [*methods, *(name for name in found if name not in methods)]
    inches = max(LEGEND_INCHES, 0.075 * max(map(len, names), default=0) + 0.5)
    columns = max(1, int(figure.get_size_inches()[0] / inches))
    rows = math.ceil(len(names) / columns)
    handles = [found[name] for name in names]
    figure.legend(handles, names, loc="outside lower center", ncols=math.ceil(len(names) / rows))


def measured_in(record: Record, method: str) -> float:
    """The joules that a method is held against, in the record of a trial."""
    return measured_for(method, record["joules"], record.get("joules_in_loops"))


def by(records: Iterable[Record], key: str) -> dict[Any, list[Record]]:
    """Records grouped by a key, in order of first appearance."""
    groups: dict[Any, list[Record]] = {}
    for record in records:
        groups.setdefault(record[key], []).append(record)
    return groups


def panels(figure: Any, count: int, columns: int = 3, width: float = 4.4, height: float = 3.6) -> list[Any]:
    columns = min(count, columns)
    rows = math.ceil(count / columns)
    figure.set_size_inches(max(5.2, width * columns), height * rows + 0.2)
    return [figure.add_subplot(rows, columns, i + 1) for i in range(count)]


def device_panels(figure: Any, records: Sequence[Record], **size: Any) -> list[tuple[Any, str, list[Record]]]:
    """One panel for each device: its axes, its title (which says where it is simulated) and its records."""
    groups = by(records, "device_title")
    return list(zip(panels(figure, len(groups), **size), groups, groups.values(), strict=True))


def family_panels(figure: Any, records: Sequence[Record]) -> list[tuple[Any, str, list[Record]]]:
    """One panel for each family on each device."""
    groups = {
        f"{family} on {device}": own
        for device, rows in by(records, "device_title").items()
        for family, own in by(rows, "family").items()
    }
    return list(zip(panels(figure, len(groups)), groups, groups.values(), strict=True))


def diagonal(axes: Any, top: float) -> None:
    """The line on which estimates equal measurements, and the band within a tenth of it."""
    axes.fill_between([0, top], [0, top / BAND], [0, top * BAND], color=FAINT, lw=0, zorder=0)
    axes.plot([0, top], [0, top], color=INK, lw=0.8, zorder=1)


def dots(axes: Any, columns: Mapping[str, Mapping[str, float]], y: str, title: str) -> None:
    """Dots for methods over families (family -> method -> value), logarithmic so that small errors are visible."""
    methods = in_order({method for column in columns.values() for method in column})
    for i, method in enumerate(methods):
        found = [(x, column[method]) for x, column in enumerate(columns.values()) if method in column]
        apart = SPREAD * (i / max(1, len(methods) - 1) - 0.5)
        ours = method == "additive"
        axes.plot(
            [x + apart for x, _ in found],
            [value for _, value in found],
            look_of(method).marker,
            ms=8 if ours else 6,
            color=colour_of(method),
            label=method_name(method),
            zorder=4 if ours else 3,
        )
    for x in range(1, len(columns)):
        axes.axvline(x - 0.5, color=FAINT, lw=0.8, zorder=0)
    axes.set(yscale="log", xlim=(-0.5, len(columns) - 0.5))
    axes.set_xticks(range(len(columns)), list(columns))
    round_ticks(axes.yaxis)
    label_axes(axes, title, "", y)


def round_ticks(axis: Any) -> None:
    """Writes 1, 2, 5, 10, ... where a logarithmic axis would write powers of ten; over many decades 1, 10, ..."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    marks = (1, 2, 5) if high < DECADES * low else (1,)
    axis.set_major_locator(LogLocator(base=10, subs=marks, numticks=8))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())
