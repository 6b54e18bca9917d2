"""`ampere measure`: train for real."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from ampere.cli import options as shared
from ampere.cli import values
from ampere.cli.console import notice, print_json
from ampere.cli.ensure_profile import stored
from ampere.cli.model_argument import asked_model, name_of
from ampere.cli.options import setup_of
from ampere.cli.progress import of_measuring, reporting
from ampere.core.errors import UsageError

if TYPE_CHECKING:
    from ampere.core import Measurement
    from ampere.estimation.estimate import Estimate
    from ampere.models.loading import LoadedModel
    from ampere.profiling.overheads import Timed
    from ampere.storage.profile import Profile

BESIDES_AT_MOST = 3.0  # seconds


def add_arguments(parser: ArgumentParser) -> None:
    shared.describe(
        parser,
        "Trains the model itself on made-up data, in processes of its own, and tells what an iteration costs: the "
        "truth that estimates are held against. Loading data, evaluation and checkpoints are not in it; the first two "
        "can be timed beside it.",
        "ampere measure lenet5                                        10 s, and the estimate if there is a profile",
        "ampere measure net.py:build --input 10x3x32x32 --evaluation",
        "ampere measure net.py:build --data data.py:loader            loader() returns what your loop iterates over",
    )
    shared.add_model(parser)
    parser.add_argument("--seconds", metavar="S", type=values.seconds, default=10.0, help="about so long (default 10)")
    shared.add_device(parser)
    shared.add_allocator(parser, "system")
    beside = parser.add_argument_group("beside the training step")
    beside.add_argument("--data", metavar="FILE.py:FUNCTION", help="time what this function returns, batch by batch")
    beside.add_argument("--evaluation", action="store_true", help="time forward passes without gradients")
    compared = parser.add_argument_group("the estimate to show beside it")
    compared.add_argument("--profile", metavar="FILE", help="default: this device's own, where there is one")
    compared.add_argument("--foreign", action="store_true", help="even if it is of another device")
    shared.add_setup(parser)
    shared.add_meter_choice(parser)
    shared.add_meter(parser, "the profile's, or 5 W: between a phone's big core and a server's")
    shared.add_output(parser)


def run(options: Namespace) -> None:
    shared.use_meter(options)
    if options.device != "local" and (options.data or options.evaluation):
        raise UsageError(f"--data and --evaluation are timed on this machine, not on {options.device}: leave them out")
    if options.evaluation and setup_of(options).runtime != "torch":
        raise UsageError(f"--evaluation is timed with torch only, not with {options.runtime}: leave one of them out")
    model, profile = asked_model(options), stored(options)
    options.watts_per_core = options.watts_per_core or _watts(profile)
    besides = _besides(options)
    measured = _measure(model, profile, options)
    estimate = _estimate(model, profile, options) if profile else None
    from ampere.cli.views.measurement import show, to_json

    if options.json:
        print_json({**to_json(name_of(model), measured, estimate, besides), "own_code": _by_own_code(model, options)})
    else:
        show(name_of(model), measured, estimate, besides, _by_own_code(model, options))


def _by_own_code(model: str | LoadedModel, options: Namespace) -> bool:
    from ampere.models.loading import is_flax
    from ampere.profiling.capabilities import runs_own_code

    flax = not isinstance(model, str) and is_flax(model.model)
    return runs_own_code(options.device, setup_of(options).runtime, flax)


def _measure(model: str | LoadedModel, profile: Profile | None, options: Namespace) -> Measurement:
    from ampere.api import measure

    with reporting(f"training {name_of(model)}", options.quiet) as report:
        return measure(
            model,
            seconds=options.seconds,
            setup=setup_of(options),
            allocator=options.allocator,
            watts_per_core=options.watts_per_core,
            profile=profile,
            device=options.device,
            on_progress=of_measuring(report),
        )


def _estimate(model: str | LoadedModel, profile: Profile, options: Namespace) -> Estimate:
    from ampere.api import estimate

    watts = options.watts_per_core if _watts_told(profile) else None
    return estimate(model, profile, allocator=options.allocator, watts_per_core=watts)


def _besides(options: Namespace) -> list[Timed]:
    from ampere.profiling.overheads import time_evaluating, time_loading

    found, seconds = [], min(BESIDES_AT_MOST, options.seconds)
    if options.data:
        notice(f"timing {options.data} ...", options.quiet)
        found.append(time_loading(options.data, seconds, options.watts_per_core))
    if options.evaluation:
        notice("timing evaluation ...", options.quiet)
        changed = {"batch": options.batch} if options.batch else {}
        found.append(
            time_evaluating(options.model, options.input, changed, setup_of(options), seconds, options.watts_per_core)
        )
    return found


def _watts(profile: Profile | None) -> float:
    from ampere.meters import DEFAULT_WATTS_PER_CORE

    return _watts_told(profile) or DEFAULT_WATTS_PER_CORE


def _watts_told(profile: Profile | None) -> float | None:
    """None where joules come from a counter."""
    from ampere.meters import watts_in

    return watts_in(profile.meter.scope) if profile else None
