"""Estimates held against what was measured: each observation of the profile by all the others, and unseen networks."""

from __future__ import annotations

from statistics import mean, median

from ampere.core import units
from ampere.estimation.additive import Additive
from ampere.estimation.estimate import Estimator
from ampere.reporting import naming, scatter
from ampere.storage.profile import Profile

from .origin import beneath
from .record import Chart, Section, Table
from .scales import tick
from .validation_file import Validated

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
