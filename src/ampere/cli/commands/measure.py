"""`ampere measure`: train for real."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ampere.cli import arguments, option_values
from ampere.cli.console import Display, headline, print_facts, print_json
from ampere.core import units
from ampere.core.errors import UsageError
from ampere.core.setup import ALLOCATORS

if TYPE_CHECKING:
    from ampere.api import MeasuredStep

FLAGS = {
    "loaded": "other programs used a part of the CPU: close them and measure again",
    "noisy": "its windows differ by more than a quarter: measure again when the machine is quiet",
    "short": "it was cut short by its time limit: give more --seconds",
    "nonfinite_loss": "the loss became infinite or not a number, which can change what a step costs",
    "throttled": "the device lowered its clock because it was warm; the yardstick step was slowed as well",
    "not_isolated": "its rounds shared a process, and so an allocator",
}
OVERHEADS = {"data": "loading data", "evaluation": "evaluation"}


def add_arguments(parser: ArgumentParser) -> None:
    arguments.describe(
        parser,
        "Trains the model itself on made-up data, in processes of its own, and reports what an iteration costs: the "
        "figure that estimates are compared with. It does not include loading data, evaluation and checkpoints; the "
        "first two can be timed as well.",
        "ampere measure lenet5                              for 10 s",
        "ampere measure net.py:build --input 10x3x32x32 --evaluation",
        "ampere measure net.py:build --data data.py:loader  the loader of your loop",
    )
    arguments.add_model(parser)
    parser.add_argument(
        "--seconds", metavar="S", type=option_values.seconds, default=10.0, help="about how long (default 10)"
    )
    arguments.add_device(parser)
    arguments.add_allocator(parser, "system")
    overheads = parser.add_argument_group("outside the training step")
    overheads.add_argument(
        "--data",
        metavar="FILE.py:FUNCTION",
        help="time what this function returns, batch by batch; or a data set: digits, mnist:FOLDER, cifar10:FOLDER, "
        "har:FOLDER, celeba:FOLDER",
    )
    overheads.add_argument("--evaluation", action="store_true", help="time forward passes without gradients")
    compared = parser.add_argument_group("estimate to compare with")
    compared.add_argument("--profile", metavar="FILE", help="default: this device's own, where there is one")
    arguments.add_other_device(compared)
    arguments.add_setup(parser)
    arguments.add_meter_choice(parser)
    arguments.add_meter(parser, "the profile's, or 5 W: between a phone's big core and a server's")
    arguments.add_output(parser)


def run(options: Namespace) -> None:
    from ampere.api import measure

    if options.device != "local" and (options.data or options.evaluation):
        raise UsageError(f"--data and --evaluation are timed on this machine, not on {options.device}: leave them out")
    if options.evaluation and options.runtime not in (None, "torch"):
        raise UsageError(f"--evaluation is timed with torch only, not with {options.runtime}: leave one of them out")
    model = arguments.subject(options.model, options, arguments.trainable_model)
    with arguments.open_device(options) as device, Display(options.quiet) as display:
        measured = measure(
            model,
            seconds=options.seconds,
            data=options.data,
            evaluation=options.evaluation,
            profile=options.profile,
            device=device,
            watts_per_core=options.watts_per_core,
            allocator=options.allocator,
            allow_other_device=options.allow_other_device,
            progress=display.progress,
            notice=display.notice,
            **arguments.given_setup(options),
        )
    if options.json:
        print_json(measured.to_json())
    else:
        headline(
            f"{measured.network or 'network'}: {units.joules(measured.joules)} per iteration, "
            f"{units.seconds(measured.seconds)}"
        )
        print_facts(_facts(measured))


def _facts(measured: MeasuredStep) -> Iterator[tuple[str, str]]:
    from ampere.cli.wording import meter_line, setup_line
    from ampere.estimation.estimate import COVERS

    yield "setup", setup_line(measured.setup, measured.batch)
    processes = units.counted(measured.rounds, "fresh process", "fresh processes")
    yield "trained", f"{units.counted(measured.iterations, 'iteration')} in {processes}"
    if measured.spread is not None:
        yield "spread", f"{units.percent(measured.spread)} between the processes (standard deviation)"
    if not measured.own_code:
        yield "built", "from the description of its layers, not by its own code"
    for flag in measured.flags:
        yield "flag", FLAGS.get(flag, flag)
    if measured.estimate is not None and measured.difference is not None:
        low, high = map(units.joules, measured.estimate.interval)
        how = "more" if measured.difference > 0 else "less"
        shown = f"{units.joules(measured.estimate.joules)} (90 %: {low} to {high})"
        yield "estimate", f"{shown}, {units.percent(abs(measured.difference))} {how} than measured"
    for timed in measured.overheads:
        batches = units.counted(timed.batches, "batch", "batches")
        cost = f"{units.joules(timed.joules)} per batch, {units.seconds(timed.seconds)} ({batches})"
        yield OVERHEADS[timed.what], f"not included above: {cost}, at the device's present speed"
    yield "joules", meter_line(measured.meter)
    when = "as it was when profiled" if measured.estimate else "at present"
    yield "condition", f"the device {when}, by the yardstick step between the training steps"
    yield "assumes", ALLOCATORS[measured.allocator]
    yield "covers", COVERS
