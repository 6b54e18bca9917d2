"""The JSON of `ampere validate --json`, read as carefully as any file from elsewhere."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

from ampere.baselines.answers import title
from ampere.core import Meter, units
from ampere.core.errors import ProfileError
from ampere.estimation.additive import Additive
from ampere.estimation.estimate import Estimator
from ampere.reporting import bars, scatter
from ampere.reporting import words as naming
from ampere.storage import files as strict_json
from ampere.storage.files import read_at_most
from ampere.storage.profile import Profile

from .drawing import tick
from .record import Chart, Section, Table
from .words import beneath

LARGEST = 8_000_000  # bytes
MOST_ROWS = 2_000
BESIDES = ("network", "actual", "again")  # what a row holds besides its estimates


@dataclass(frozen=True)
class Row:
    network: str
    actual: float
    estimates: dict[str, float]


@dataclass(frozen=True)
class Validated:
    model: str
    rows: tuple[Row, ...]
    mape: dict[str, float]
    repeatability: float
    meter: Meter
    ours: str  # the method that the others are held against


def read_validation(path: Path) -> Validated:
    raw = read_at_most(path, LARGEST)
    try:
        return _validated(strict_json.loads(raw.decode("utf-8")))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise ProfileError(
            f"{path} is not a validation ({what[:120]}): make one with `ampere validate MODEL --json --no-plot > FILE`"
        ) from None


def _validated(record: dict[str, Any]) -> Validated:
    mape = {str(m): _figure(error, f"the error of {m}") for m, error in record["mape"].items()}
    if not mape:
        raise ValueError("it has no method")
    if not 0 < len(record["rows"]) <= MOST_ROWS:
        raise ValueError(f"it has {len(record['rows'])} rows")
    rows = tuple(_row(row, mape) for row in record["rows"])
    repeatability = _figure(record["repeatability_mape"], "the repeatability")
    ours = "additive" if "additive" in mape else next(iter(mape))  # the main profile's method comes first
    return Validated(str(record["model"]), rows, mape, repeatability, Meter(**record["meter"]), ours)


def _row(row: dict[str, Any], mape: dict[str, float]) -> Row:
    estimates = {m: _figure(row[m], m) for m in mape}
    actual = _figure(row["actual"], "a measurement")
    if not actual > 0:
        raise ValueError("a measurement is not positive")
    return Row(str(row["network"]), actual, estimates)


def _figure(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{what} is {value!r:.40}")
    return float(value)


# Estimates held against what was measured: each observation of the profile by all the others, and unseen networks.

LOOKS = {
    "layer": ("rest", "square"),
    "opaque": ("two", "triangle"),
    "variant": ("three", "diamond"),
    "network": ("one", "circle"),
}
FEWEST = 4  # measurements
OURS, RIVAL = ("one", "circle"), ("two", "triangle")


def accuracy_section(profile: Profile, estimator: Estimator, validated: Validated | None) -> Section | None:
    charts: list[Chart] = []
    words: list[str] = []
    held_out = left_out(profile, estimator)
    if held_out:
        errors = [abs(s.estimated / s.measured - 1) for spots in held_out.values() for s in spots]
        words.append(
            f"Each of the profile's {len(errors)} measurements, estimated from all the others, is "
            f"{units.percent(mean(errors))} off on average, and half of them less than {units.percent(median(errors))}."
        )
        charts.append(_left_out_chart(held_out, estimator))
    if validated:
        ours = f"{naming.method(validated.ours)} is {units.percent(validated.mape[validated.ours])} off on average"
        words.append(
            f"On {len(validated.rows)} networks like {validated.model} that the profile never saw, {ours}; "
            f"measuring them a second time differs by {units.percent(validated.repeatability)}."
        )
        charts.append(_validation_chart(validated))
    return Section("accuracy", "Estimated against measured", tuple(words), charts=tuple(charts)) if charts else None


def left_out(profile: Profile, estimator: Estimator) -> dict[str, list[scatter.Spot]]:
    """By purpose, each measurement and what the others say of it; empty where the method cannot tell."""
    model, joules = estimator.of_joules
    if not isinstance(model, Additive) or len(model.data) < FEWEST:
        return {}
    errors, _ = model.leave_one_out()
    spots: dict[str, list[scatter.Spot]] = {}
    for observation, cost, error in zip(profile.observations, model.data.costs, errors, strict=True):
        measured, estimated = joules * float(cost), joules * max(float(cost - error), 1e-12)
        told = f"measured {units.joules(measured)}, estimated {units.joules(estimated)}"
        tip = f"{naming.network(observation.network)}: {told}"
        spots.setdefault(observation.purpose, []).append(scatter.Spot(measured, estimated, tip))
    return spots


def _left_out_chart(held_out: dict[str, list[scatter.Spot]], estimator: Estimator) -> Chart:
    series = [
        scatter.Series(f"{naming.PURPOSES[p]} ({len(held_out[p])})", held_out[p], *LOOKS.get(p, ("rest", "circle")))
        for p in sorted(held_out, key=lambda p: list(LOOKS).index(p) if p in LOOKS else -1)
    ]
    return _chart(
        "left-out",
        "The profile's own measurements, each left out in turn",
        f"Every point is one measurement and what all the others say of it. {beneath(estimator.meter)}",
        series,
    )


def _validation_chart(validated: Validated) -> Chart:
    rival = min(
        (m for m in validated.mape if m != validated.ours and "flops" in m),
        key=lambda m: validated.mape[m],
        default=None,
    )
    series = [_of_method(validated, rival, *RIVAL)] if rival else []
    series.append(_of_method(validated, validated.ours, *OURS))
    return _chart(
        "validation",
        f"Unseen networks like {validated.model}, trained for real",
        f"Every network was trained and measured after it had been estimated. {beneath(validated.meter)}",
        series,
    )


def _of_method(validated: Validated, method: str, colour: str, shape: str) -> scatter.Series:
    spots = []
    for row in validated.rows:
        estimated = row.estimates[method]
        told = f"measured {units.joules(row.actual)}, {naming.method(method)} {units.joules(estimated)}"
        spots.append(scatter.Spot(row.actual, estimated, f"{row.network}: {told}"))
    label = f"{naming.method(method)}: {units.percent(validated.mape[method])} off"
    return scatter.Series(label, spots, colour, shape)


def _chart(key: str, title: str, caption: str, series: list[scatter.Series]) -> Chart:
    middle = median(spot.measured for one in series for spot in one.spots)
    scale, unit = units.joules_unit(middle)
    rows = tuple(
        (
            one.label,
            units.joules(s.measured),
            units.joules(s.estimated),
            f"{100 * (s.estimated / s.measured - 1):+.1f} %",
        )
        for one in series
        for s in one.spots
    )
    return Chart(
        key,
        title,
        caption,
        lambda width: scatter.draw(series, width, unit, lambda v: tick(v / scale)),
        Table(("series", ">measured", ">estimated", ">error"), rows),
    )


# Ampere beside every other method, on the same unseen networks.


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
