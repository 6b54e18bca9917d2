"""What is printed of a whole run: its parts, the battery, kilowatt-hours, money and carbon."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ampere.core import units

from .wording import joules_label, within

if TYPE_CHECKING:
    from ampere.api import RunPlan
    from ampere.core import Meter
    from ampere.estimation.estimate import Estimate
    from ampere.estimation.running_costs import Tariff
    from ampere.estimation.training_run import Battery, TrainingRun

Line = tuple[str, str]
DEFAULT_FACTOR = 1.0


def run_lines(estimate: Estimate, total: TrainingRun | None, plan: RunPlan) -> Iterator[Line]:
    battery = plan.full_battery
    if total is not None:
        yield "run", _whole(total, plan.epochs)
        yield from _parts(total)
    if battery is not None:
        yield "battery", _verdict(total) if total else _lasts(battery, estimate)
    if battery is not None or plan.idle is not None:
        yield "idle", _idle(estimate, total, plan.watts_idle)
    elif estimate.net_joules is not None:
        net = estimate.net_joules if total is None else total.net_joules or 0.0
        of = "per iteration" if total is None else "of the run"
        yield "net of idle", f"{units.joules(net)} {of}; the meter reads {estimate.watts_idle:.3g} W at rest"
    if total is not None:
        yield from _costs(total)
        yield "without", total.not_covered


def _whole(total: TrainingRun, epochs: int | None) -> str:
    low, high = map(units.joules, total.interval)
    length = f"{units.counted(epochs, 'epoch')} = " if epochs else ""
    energy = f"{units.joules(total.joules)} (90 %: {low} to {high}) = {units.watt_hours(total.joules)}"
    return f"{length}{units.counted(total.iterations, 'iteration')}: {energy}, {units.seconds(total.seconds)}"


def _parts(total: TrainingRun) -> Iterator[Line]:
    """Nothing where training is all there is, and costs what was estimated."""
    alone = len(total.parts) == 1 and total.parts[0].source == "estimated"
    for part in () if alone else total.parts:
        share = units.percent(part.joules / total.joules)
        count = f"{part.count:,} {'batches' if part.name != 'checkpoints' else 'of them'}"
        cost = f"{units.joules(part.joules)} ({share}), {units.seconds(part.seconds)}"
        yield f"  {part.name}", f"{cost}: {count}, {part.source}"


def _verdict(total: TrainingRun) -> str:
    """`fits, with a probability of 97 %: the run needs 56 % of 50Wh (90 %: 50 % to 62 %)`."""
    low, high = map(units.percent, total.battery_share_interval or (0.0, 0.0))
    share, battery = units.percent(total.battery_share or 0.0), total.battery.label if total.battery else ""
    charges = total.battery_charges or 1
    needs = f"the run needs {share} of {battery} (90 %: {low} to {high})"
    needs += f", {charges:,} charges" if charges > 1 else ""
    needs += _origin(total.meter)
    probability = total.fits_probability or 0.0
    if total.verdict == "uncertain":
        return f"may not last: it fits with a probability of {units.probability(probability)}; {needs}"
    fits = total.verdict == "fits"
    return (
        f"{total.verdict}, with a probability of {units.probability(probability if fits else 1 - probability)}: {needs}"
    )


def _lasts(battery: Battery, estimate: Estimate) -> str:
    from ampere.estimation.training_run import iterations_in

    expected, least = iterations_in(battery, estimate)
    about = units.counted(expected, "iteration")
    return f"{battery.label} lasts for about {about} (at least {least:,} with 95 % probability)"


def _idle(estimate: Estimate, total: TrainingRun | None, given: float | None) -> str:
    """What the device draws anyway, and whether it is in the figures."""
    measured = estimate.watts_idle
    if given is not None:
        already = f"; the meter counts {measured:.3g} W of it already" if measured else ""
        if total is None:
            return f"{given:.3g} W, which the device draws anyway, are counted{already}"
        share = units.percent(total.idle_joules / total.gross.mean)
        gross = units.joules(total.gross.mean)
        return f"{units.joules(total.idle_joules)} at {given:.3g} W, {share} of what the run needs, {gross}{already}"
    if estimate.watts_idle is not None:
        share = units.percent(min(1.0, estimate.watts_idle * estimate.seconds / estimate.joules))
        return f"{estimate.watts_idle:.3g} W at rest, measured: {share} of these joules, and in them already"
    return "not counted: what the device draws anyway, such as its screen, may be half of it; --idle 8W adds it"


def _costs(total: TrainingRun) -> Iterator[Line]:
    """Kilowatt-hours where something about them is asked, then money and carbon, each with its interval."""
    tariff, (low, high) = total.tariff, total.gross_interval
    if tariff.price is None and not tariff.grids and tariff.facility_factor == DEFAULT_FACTOR:
        return
    least, most = tariff.kwh(low), tariff.kwh(high)
    origin = _origin(total.meter)
    yield "kWh", f"{_kwh(total.kwh)} (90 %: {_kwh(least)} to {_kwh(most)}){_facility(tariff)}{origin}"
    if tariff.price:
        price = tariff.price
        yield "price", f"{price.money(total.kwh)} (90 %: {price.money(least)} to {price.money(most)}){origin}"
    for grid in tariff.grids:
        interval = f"90 %: {grid.carbon(least)} to {grid.carbon(most)}"
        source = f"{grid.grams_per_kwh:g} g/kWh, {grid.source}"
        yield "CO2e", f"{grid.region}: {grid.carbon(total.kwh)} ({interval}){origin}; {source}"


def _origin(meter: Meter) -> str:
    """Whether joules were measured, and how far modelled ones may be off, to follow a figure."""
    label = "measured joules" if meter.measured and not meter.simulated else joules_label(meter)
    return f", {label}{within(meter)}"


def _facility(tariff: Tariff) -> str:
    factor = tariff.facility_factor
    return f" at the facility's meter (x {factor:g})" if factor != DEFAULT_FACTOR else ""


def _kwh(value: float) -> str:
    return f"{value:,.1f}" if value >= 100 else f"{value:.3g}"
