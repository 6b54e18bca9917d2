"""A measurement on the screen, with its doubts and the estimate beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ampere.cli.console import headline, print_facts
from ampere.core import Measurement, units
from ampere.core.setup import ALLOCATORS
from ampere.estimation.estimate import COVERS, Estimate
from ampere.profiling.overheads import Timed

from .meter import in_words

FLAGS = {
    "loaded": "other programs took a part of the CPU: close them and measure again",
    "noisy": "its windows differ by more than a quarter: measure again when the machine is quiet",
    "short": "it was cut short by its time limit: give more --seconds",
    "nonfinite_loss": "the loss became infinite or not a number, which can change what a step costs",
    "throttled": "the device lowered its clock because it was warm; the yardstick beside it was slowed as well",
    "not_isolated": "its rounds shared a process, and so an allocator",
}
BESIDES = {"data": "loading data", "evaluation": "evaluation"}


def show(name: str, measured: Measurement, estimate: Estimate | None, besides: Sequence[Timed], own_code: bool) -> None:
    headline(f"{name}: {units.joules(measured.joules)} per iteration, {units.seconds(measured.seconds)}")
    print_facts(_facts(measured, estimate, besides, own_code))


def _facts(
    measured: Measurement, estimate: Estimate | None, besides: Sequence[Timed], own_code: bool
) -> Iterator[tuple[str, str]]:
    spread = "one round only" if measured.spread is None else f"rounds differ by {units.percent(measured.spread)}"
    yield "trained", f"{measured.iterations:,} iterations in {len(measured.rounds)} rounds; {spread}"
    if not own_code:
        yield "built", "from the description of its layers, not by its own code"
    for flag in measured.flags:
        yield "doubt", FLAGS.get(flag, flag)
    if estimate is not None:
        low, high = map(units.joules, estimate.interval)
        off = difference(measured, estimate)
        how = "more" if off > 0 else "less"
        shown = f"{units.joules(estimate.joules)} (90 %: {low} to {high})"
        yield "estimate", f"{shown}, {units.percent(abs(off))} {how} than measured"
    for timed in besides:
        cost = f"{units.joules(timed.joules)} per batch, {units.seconds(timed.seconds)} ({timed.batches:,} batches)"
        yield BESIDES[timed.what], f"besides: {cost}, as fast as the device was just now"
    yield "joules", in_words(measured.meter)
    when = "as it was when profiled" if estimate else "as it is now"
    yield "condition", f"the device {when}, by the yardstick between the steps"
    yield "stands for", ALLOCATORS[measured.allocator]
    yield "covers", COVERS


def difference(measured: Measurement, estimate: Estimate) -> float:
    return estimate.joules / measured.joules - 1


def to_json(name: str, measured: Measurement, estimate: Estimate | None, besides: Sequence[Timed]) -> dict[str, Any]:
    return {
        "network": name,
        "joules_per_iteration": measured.joules,
        "seconds_per_iteration": measured.seconds,
        "cpu_seconds_per_iteration": measured.cpu_seconds,
        "spread": measured.spread,
        "rounds": len(measured.rounds),
        "iterations": measured.iterations,
        "flags": list(measured.flags),
        "meter": measured.meter.to_json(),
        "allocator": measured.allocator,
        "covers": COVERS,
        "estimate": estimate.to_json() if estimate else None,
        "difference": difference(measured, estimate) if estimate else None,
        **{what: next((t.to_json() for t in besides if t.what == what), None) for what in BESIDES},
    }
