"""How good the estimates are: each measurement of the profile left out in turn, and a validation on unseen networks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

from ampere.baselines.answers import measured_for, title
from ampere.core import Meter, units
from ampere.core.errors import ProfileError
from ampere.estimation.additive import Additive
from ampere.estimation.estimator import Estimator
from ampere.storage import files as strict_json
from ampere.storage.files import read_at_most

from .charts import Bar, Bars, Reference, Scatter, Series, Spot
from .record import Chart, Section, Table
from .words import PURPOSES, joules_note, method_name, network_name

LARGEST = 8_000_000  # bytes of a validation's file
MOST_ROWS = 2_000
FEWEST = 4  # measurements that can be left out in turn
LOOKS = {
    "layer": ("rest", "square"),
    "opaque": ("two", "triangle"),
    "variant": ("three", "diamond"),
    "network": ("one", "circle"),
}
OURS, BASELINE = ("one", "circle"), ("two", "triangle")


@dataclass(frozen=True)
class Row:
    network: str
    actual: float
    estimates: dict[str, float]
    in_loops: float | None = None  # what the paper's method is held against


@dataclass(frozen=True)
class Validated:
    """What `ampere validate --json` printed."""

    model: str
    rows: tuple[Row, ...]
    mape: dict[str, float]
    repeatability: float
    meter: Meter
    ours: str  # the method that the others are compared with
    device: str = ""

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Validated:
        """Checked like any file from elsewhere; a ValueError, KeyError or TypeError says what is wrong."""
        mape = {str(m): _figure(error, f"the error of {m}") for m, error in record["mape"].items()}
        if not mape:
            raise ValueError("it has no method")
        if not 0 < len(record["rows"]) <= MOST_ROWS:
            raise ValueError(f"it has {len(record['rows'])} rows")
        rows = tuple(_row(row, mape) for row in record["rows"])
        repeatability = _figure(record["repeatability_mape"], "the repeatability")
        ours = "additive" if "additive" in mape else next(iter(mape))  # the main profile's method comes first
        meter, device = Meter(**record["meter"]), str(record.get("device", ""))
        return cls(str(record["model"]), rows, mape, repeatability, meter, ours, device)


def read_validation(path: Path) -> Validated:
    raw = read_at_most(path, LARGEST)
    try:
        return Validated.from_json(strict_json.loads(raw.decode("utf-8")))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise ProfileError(
            f"{path} is not a validation ({what[:120]}): make one with `ampere validate MODEL --json --no-plot > FILE`"
        ) from None


def _row(row: dict[str, Any], mape: dict[str, float]) -> Row:
    estimates = {m: _figure(row[m], m) for m in mape}
    actual = _figure(row["actual"], "a measurement")
    if not actual > 0:
        raise ValueError("a measurement is not positive")
    in_loops = row.get("actual_in_loops")
    return Row(str(row["network"]), actual, estimates, in_loops and _figure(in_loops, "a measurement in loops"))


def _figure(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{what} is {value!r:.40}")
    return float(value)


def accuracy_section(estimator: Estimator, validated: Validated | None) -> Section | None:
    charts: list[Chart] = []
    words: list[str] = []
    held_out = left_out(estimator)
    if held_out:
        errors = [abs(s.estimated / s.measured - 1) for spots in held_out.values() for s in spots]
        words.append(
            f"Each of the profile's {len(errors)} measurements, estimated from all the others, is "
            f"{units.percent(mean(errors))} off on average, and half of them less than {units.percent(median(errors))}."
        )
        charts.append(_left_out_chart(held_out, estimator))
    if validated:
        ours = f"{method_name(validated.ours)} is {units.percent(validated.mape[validated.ours])} off on average"
        words.append(
            f"On {units.counted(len(validated.rows), 'network')} like {validated.model} that the profile never saw, "
            f"{ours}; measuring them a second time differs by {units.percent(validated.repeatability)}."
        )
        charts.append(validation_chart(validated))
    return Section("accuracy", "Estimated against measured", tuple(words), charts=tuple(charts)) if charts else None


def expected_error(estimator: Estimator) -> float | None:
    """The mean error on whole networks, which estimates are made for; on all measurements where there are none."""
    found = left_out(estimator)
    spots = found.get("network") or [spot for of_purpose in found.values() for spot in of_purpose]
    return mean(abs(s.estimated / s.measured - 1) for s in spots) if spots else None


def left_out(estimator: Estimator) -> dict[str, list[Spot]]:
    """Each measurement, by purpose, and its estimate from all the others; empty where the method has none."""
    model, joules = estimator.of_joules
    if not isinstance(model, Additive) or len(model.data) < FEWEST:
        return {}
    errors, _ = model.leave_one_out()
    spots: dict[str, list[Spot]] = {}
    measured_here = {(c.network, c.allocator) for c in estimator.costs}  # others are of other numbers of threads
    for fitted, cost, error in zip(estimator.fitted_costs, model.data.costs, errors, strict=True):
        if fitted.purpose != "run" and (fitted.network, fitted.allocator) not in measured_here:
            continue
        measured, estimated = joules * float(cost), joules * max(float(cost - error), 1e-12)
        both = f"measured {units.joules(measured)}, estimated {units.joules(estimated)}"
        spots.setdefault(fitted.purpose, []).append(
            Spot(measured, estimated, f"{network_name(fitted.network)}: {both}")
        )
    return spots


def _left_out_chart(held_out: dict[str, list[Spot]], estimator: Estimator) -> Chart:
    series = [
        Series(f"{PURPOSES[p]} ({len(held_out[p])})", held_out[p], *LOOKS.get(p, ("rest", "circle")))
        for p in sorted(held_out, key=lambda p: list(LOOKS).index(p) if p in LOOKS else -1)
    ]
    return _scatter_chart(
        "left-out",
        "The profile's own measurements, each left out in turn",
        f"Every point is one measurement and its estimate from all the others. {joules_note(estimator.meter)}",
        series,
    )


def validation_chart(validated: Validated) -> Chart:
    """Unseen networks, trained: Ampere's estimates, and those of the better FLOPs baseline."""
    baselines = [m for m in validated.mape if m != validated.ours and "flops" in m]
    baseline = min(baselines, key=lambda m: validated.mape[m], default=None)
    series = [_of_method(validated, baseline, *BASELINE)] if baseline else []
    series.append(_of_method(validated, validated.ours, *OURS))
    where = f" on {validated.device}" if validated.device else ""
    return _scatter_chart(
        "validation",
        f"{units.counted(len(validated.rows), 'unseen network')} like {validated.model}, trained{where}",
        "Every network was trained and measured after it had been estimated; measured a second time they differ by "
        f"{units.percent(validated.repeatability)}. {joules_note(validated.meter)}",
        series,
    )


def draw_validation(record: dict[str, Any], path: Path) -> None:
    """Draws a validation, given as its JSON, as a PNG."""
    from .plotting import save_chart

    save_chart(validation_chart(Validated.from_json(record)), path)


def _of_method(validated: Validated, method: str, colour: str, shape: str) -> Series:
    spots = []
    for row in validated.rows:
        measured, estimated = measured_for(method, row.actual, row.in_loops), row.estimates[method]
        both = f"measured {units.joules(measured)}, {method_name(method)} {units.joules(estimated)}"
        spots.append(Spot(measured, estimated, f"{row.network}: {both}"))
    return Series(f"{method_name(method)}: {units.percent(validated.mape[method])} off", spots, colour, shape)


def _scatter_chart(key: str, title_: str, caption: str, series: list[Series]) -> Chart:
    unit_joules, unit = units.joules_unit(median(spot.measured for one in series for spot in one.spots))
    rows = tuple(
        (
            one.label,
            units.joules(s.measured),
            units.joules(s.estimated),
            units.signed_percent(s.estimated / s.measured - 1),
        )
        for one in series
        for s in one.spots
    )
    columns = ("series", ">measured", ">estimated", ">error")
    return Chart(key, title_, caption, Scatter(series, unit_joules, unit), Table(columns, rows))


def methods_section(validated: Validated) -> Section:
    """Ampere compared with every other method, on the same unseen networks."""
    order = sorted(validated.mape, key=lambda m: validated.mape[m])
    bars = [
        Bar(
            method_name(m),
            validated.mape[m],
            units.percent(validated.mape[m]),
            f"{method_name(m)}: {units.percent(validated.mape[m])} off on average",
            colour="one" if m == validated.ours else "rest",
        )
        for m in order
    ]
    cells = [(bar.name, title(m), bar.label) for m, bar in zip(order, bars, strict=True)]
    repeat = units.percent(validated.repeatability)
    chart = Chart(
        "methods",
        "Mean error of each method on the same unseen networks",
        f"Mean absolute percentage error on {units.counted(len(validated.rows), 'network')}. Upright line: how far a "
        "second measurement of them is from the first; no smaller error can be shown. "
        f"{joules_note(validated.meter)}",
        Bars(bars, Reference(validated.repeatability, f"measuring twice: {repeat}")),
        Table(("method", "what it is", ">mean error"), (*cells, ("measuring twice", "", repeat))),
        full=True,
    )
    return Section("methods", "Methods side by side", charts=(chart,))
