"""`ampere estimate`: what training will cost."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace

from ampere.cli import options as shared
from ampere.cli import values
from ampere.cli.console import notice, print_json
from ampere.cli.ensure_profile import Known, ensure_profile
from ampere.cli.model_argument import model_argument
from ampere.cli.training_run import WholeRun, add_run, battery_joules, check_asked, iterations_asked, whole_run


def add_arguments(parser: ArgumentParser) -> None:
    shared.describe(
        parser,
        "How many joules training a model will cost on this device, by layer and with how sure that is. The model "
        "is not trained. The first time, the device is profiled for some seconds.",
        "ampere estimate lenet5                                       one iteration, layer by layer",
        "ampere estimate net.py:build --input 10x3x32x32 --iterations 10000",
        "ampere estimate resnet --epochs 30 --samples 50000 --battery 15Wh --json",
        "ampere estimate cnn5 --device simulated:phone-android        on a device that is not there",
        "ampere estimate net.json --profile phone.json --foreign      without PyTorch, for another device",
    )
    shared.add_model(parser, ", or a file of `ampere trace`")
    add_run(parser)
    shared.add_allocator(parser, "system")
    parser.add_argument(
        "--now", action="store_true", help="as fast or slow as the device is now (default: as it was when profiled)"
    )
    parser.add_argument(
        "--top",
        metavar="K",
        type=values.count_or_zero,
        help="show the K dearest layers (default: as many as fit the screen; 0: all)",
    )
    shared.add_device(parser)
    shared.add_profiling(parser)
    shared.add_method(parser)
    shared.add_setup(parser)
    shared.add_meter(parser, "the profile's own")
    shared.add_output(parser)


def run(options: Namespace) -> None:
    check_asked(options)
    battery = battery_joules(options)
    known = ensure_profile(model_argument(options), options)
    if options.now:
        known = _as_it_is_now(known, options)
    iterations = iterations_asked(options, known.network.batch)
    total = whole_run(known.estimate, iterations, battery) if iterations else None
    if options.json:
        print_json(to_json(known, total))
    else:
        from ampere.cli.views.estimate import show

        show(known, total, options, battery)


def to_json(known: Known, total: WholeRun | None) -> dict[str, object]:
    profile = known.profile
    origin = {
        "path": str(known.path),
        "measurements": len(profile.observations),
        "profiling_seconds": profile.profiling_seconds,
        "spaces": list(profile.spaces),
        "device": str(profile.device.get("cpu", profile.device["id"])),
    }
    impossible = {"impossible": list(known.lacks)} if known.lacks else {}
    return {**known.estimate.to_json(), **impossible, "total": total and total.to_json(), "profile": origin}


def _as_it_is_now(known: Known, options: Namespace) -> Known:
    from ampere.api import present_condition

    notice("asking how fast the device is now ...", options.quiet)
    condition = present_condition(known.profile, device=options.device)
    return replace(known, estimate=known.estimator.estimate(known.network, options.allocator, condition))
