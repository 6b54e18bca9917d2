"""Ampere beside every other method, on the same unseen networks."""

from __future__ import annotations

from ampere.core import units
from ampere.reporting import bars, naming
from ampere.validation.methods import title

from .origin import beneath
from .record import Chart, Section, Table
from .validation_file import Validated


def methods_section(validated: Validated) -> Section:
    order = sorted(validated.mape, key=lambda m: validated.mape[m])
    rows = [
        bars.Bar(
            naming.method(m),
            validated.mape[m],
            units.percent(validated.mape[m]),
            f"{naming.method(m)}: {units.percent(validated.mape[m])} off on average",
            colour="one" if m == validated.ours else "rest",
        )
        for m in order
    ]
    told = [(bar.name, title(m), bar.label) for m, bar in zip(order, rows, strict=True)]
    again = bars.Reference(validated.repeatability, f"measuring twice: {units.percent(validated.repeatability)}")
    chart = Chart(
        "methods",
        "Mean error of each method on the same unseen networks",
        f"Mean absolute percentage error on {len(validated.rows)} networks. Upright line: how far a second measurement "
        f"of them is from the first; no method can be seen to be better. {beneath(validated.meter)}",
        lambda width: bars.draw(rows, width, again),
        Table(("method", "what it is", ">mean error"), (*told, ("measuring twice", "", units.percent(again.value)))),
        full=True,
    )
    return Section("methods", "Methods side by side", charts=(chart,))
