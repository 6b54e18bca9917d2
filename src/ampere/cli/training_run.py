"""From one iteration to a whole training run, and to the share of a battery."""

from __future__ import annotations

import math
from argparse import ArgumentParser, Namespace
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ampere.cli import values
from ampere.core.errors import UsageError

if TYPE_CHECKING:
    from ampere.estimation.estimate import Estimate


@dataclass(frozen=True)
class WholeRun:
    iterations: int
    joules: float
    joules_interval90: tuple[float, float]
    seconds: float
    battery_share: float | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def add_run(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("the whole run")
    group.add_argument("--iterations", metavar="N", type=values.count, help="default: one iteration only")
    group.add_argument(
        "--epochs", metavar="N", type=values.count, help="with --samples; an epoch is samples / batch iterations"
    )
    group.add_argument("--samples", metavar="M", type=values.count, help="examples in the training set")
    group.add_argument("--battery", metavar="ENERGY", help="what a full battery holds: 15Wh, 54kJ")


def battery_joules(options: Namespace) -> float | None:
    if options.battery is None:
        return None
    from ampere.estimation.estimate import joules_in

    return joules_in(options.battery)


def check_asked(options: Namespace) -> None:
    if options.iterations and (options.epochs or options.samples):
        raise UsageError("--iterations and --epochs say the same thing twice: give one of them")
    if bool(options.epochs) != bool(options.samples):
        missing = "--samples, how many examples an epoch has" if options.epochs else "--epochs"
        raise UsageError(f"an epoch's iterations are not known: give {missing} as well")


def iterations_asked(options: Namespace, batch: int) -> int | None:
    """An epoch's last batch may be smaller, and is a batch all the same."""
    if options.epochs:
        return int(options.epochs * math.ceil(options.samples / batch))
    return int(options.iterations) if options.iterations else None


def whole_run(estimate: Estimate, iterations: int, battery_joules: float | None) -> WholeRun:
    """The error of an iteration is the same at each of them, so it grows with their number."""
    low, high = estimate.interval
    joules = estimate.total_joules(iterations)
    return WholeRun(
        iterations,
        joules,
        (low * iterations, high * iterations),
        estimate.seconds * iterations,
        joules / battery_joules if battery_joules else None,
    )
