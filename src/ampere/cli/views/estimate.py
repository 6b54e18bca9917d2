"""An estimate on the screen: the headline, the run, the layers, and where all that comes from."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence

from ampere.cli.console import bar, headline, print_facts, print_table, rows_that_fit
from ampere.cli.ensure_profile import SURE_ENOUGH, Known
from ampere.cli.options import same_again
from ampere.cli.training_run import WholeRun
from ampere.core import units
from ampere.core.setup import ALLOCATORS, TrainingSetup
from ampere.estimation.estimate import COVERS, Estimate, LayerShare
from ampere.runtimes.table import OURS

from .meter import in_words

NAMES_SHOWN = 6
OTHER_LINES = 16  # above and below the layers


def show(known: Known, total: WholeRun | None, options: Namespace, battery: float | None) -> None:
    estimate = known.estimate
    headline(f"{estimate.network or 'network'}: {first_line(estimate)}")
    print_facts(_run(estimate, total, options, battery))
    print()
    scale, unit = units.joules_unit(estimate.joules)
    print_table(["layer", "kind", f">{unit}", ">±", ">share", "|"], _rows(estimate, options.top, scale))
    print()
    print_facts([*_doubts(known, options), *_origins(known, options)])


def first_line(estimate: Estimate) -> str:
    low, high = estimate.interval
    scale, unit = units.joules_unit(estimate.joules)
    shown = [units.three(v / scale) for v in (estimate.joules, estimate.stddev, low, high)]
    energy = f"{shown[0]} ± {shown[1]} {unit} per iteration (90 %: {shown[2]} to {shown[3]} {unit})"
    return f"{energy}, {units.seconds(estimate.seconds)}"


def _run(
    estimate: Estimate, total: WholeRun | None, options: Namespace, battery: float | None
) -> Iterator[tuple[str, str]]:
    if total is not None:
        low, high = map(units.joules, total.joules_interval90)
        yield (
            f"{total.iterations:,} iterations",
            (
                f"{units.joules(total.joules)} (90 %: {low} to {high}) = {units.watt_hours(total.joules)}, "
                f"{units.seconds(total.seconds)}"
            ),
        )
    if estimate.net_joules is not None:
        rest = f"{estimate.watts_idle:.3g} W at rest"
        yield "net of idle", f"{units.joules(estimate.net_joules)} per iteration; the meter reads {rest}"
    if total is not None and total.battery_share is not None:
        yield "battery", f"{units.percent(total.battery_share)} of {options.battery}"
    elif battery:
        yield "battery", f"{options.battery} are {int(battery / estimate.joules):,} iterations"


def _rows(estimate: Estimate, top: int | None, scale: float) -> Iterator[tuple[str, ...]]:
    shown = _folded(estimate, rows_that_fit(OTHER_LINES, 8, 20) if top is None else top)
    largest = max(share.joules for share in shown)
    for share in shown:
        part = share.joules / estimate.joules
        doubt = f"{share.stddev / scale:.2g}" if share.stddev else ""
        cost = units.significant(share.joules / scale)
        yield share.name or "-", share.kind, cost, doubt, units.percent(part), bar(share.joules / largest)


def _folded(estimate: Estimate, top: int) -> list[LayerShare]:
    """The dearest layers in the order in which they run, the others as one, and what a step costs besides."""
    *layers, step = estimate.layers
    kept = set(sorted(range(len(layers)), key=lambda i: layers[i].joules, reverse=True)[: top or None])
    others = [share.joules for i, share in enumerate(layers) if i not in kept]
    folded = [LayerShare(f"({len(others)} others)", "", sum(others), 0.0)] if others else []
    return [*(layers[i] for i in sorted(kept)), *folded, step]


def _doubts(known: Known, options: Namespace) -> Iterator[tuple[str, str]]:
    estimate = known.estimate
    if estimate.unprofiled:
        yield (
            "not profiled",
            f"{_some(estimate.unprofiled)}: no layer of such a kind was measured; priced by its arithmetic alone",
        )
    if estimate.extrapolated:
        yield "extrapolated", f"{_some(estimate.extrapolated)}: far larger or smaller than any layer that was measured"
    setup = known.profile.setup
    if known.lacks:
        yield "impossible", f"{setup.runtime} cannot train {_some(known.lacks)}: take another --runtime, such as torch"
    elif estimate.stddev > SURE_ENOUGH * estimate.joules or estimate.unprofiled or estimate.extrapolated:
        model = "MODEL" if options.model.endswith(".json") else options.model
        yield "to be surer", f"ampere profile {model}{same_again(options, setup)} --seconds {_longer(setup)}"
    for note in known.network.notes:
        yield "note", note


def _longer(setup: TrainingSetup) -> int:
    """Than what a profile takes by itself."""
    return 240 if setup.runtime in OURS and OURS[setup.runtime].compiles else 60


def _some(names: Sequence[str]) -> str:
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _origins(known: Known, options: Namespace) -> Iterator[tuple[str, str]]:
    estimate, profile = known.estimate, known.profile
    yield "joules", in_words(estimate.meter)
    yield "condition", _condition(estimate, options.now, len(profile.runs))
    yield "stands for", ALLOCATORS[estimate.allocator]
    yield "covers", COVERS
    spaces = ", ".join(profile.spaces)
    yield "profile", f"{known.path}: {len(profile.observations)} measurements of {spaces}"


def _condition(estimate: Estimate, now: bool, runs: int) -> str:
    if not now and not runs:
        return "the device as it was when profiled; --now asks how it is at present"
    change = estimate.condition - 1
    how = f"{units.percent(abs(change))} {'dearer' if change > 0 else 'cheaper'} than when it was profiled"
    told = "" if now else f", as {runs} recorded {'run tells' if runs == 1 else 'runs tell'}; --now asks it"
    return f"the device as it is now: a step is {how}{told}"
