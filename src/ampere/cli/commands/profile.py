"""`ampere profile`: learn what layers cost here."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ampere.cli import options as shared
from ampere.cli import values
from ampere.cli.console import print_json
from ampere.cli.model_argument import asked_model
from ampere.cli.run_profiling import run_profiling
from ampere.core.errors import UsageError

SPACES = ("cnn", "transformers", "recurrent")


def add_arguments(parser: ArgumentParser) -> None:
    shared.describe(
        parser,
        "Trains small networks and layers like the model's on this device, and keeps what was learnt. A profile that "
        "is already there is extended; a run that was stopped goes on where it was.",
        "ampere profile lenet5                              15 s, for LeNet-5 of any widths",
        "ampere profile net.py:build --target 3% --seconds 120",
        "ampere profile --space cnn --seconds 300 --out cnns.json",
        "ampere profile cnn5 --device simulated:xavier      a device that is not there",
        "ampere profile cnn5 --meter log:later --out c.json a bench meter's file comes later, with ampere attach",
    )
    shared.add_model(parser, optional=True)
    parser.add_argument("--space", choices=SPACES, help="instead of a model: all networks of this sort")
    parser.add_argument(
        "--seconds",
        metavar="S",
        type=values.seconds,
        help="at most so long (default 15; a runtime that compiles: 120; a slow counter: more)",
    )
    parser.add_argument(
        "--target",
        metavar="SHARE",
        type=values.share,
        default=0.0,
        help="stop at this expected error, as 3%% or 0.03 (default: use the time)",
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="the profile's file (default: this device's own, in AMPERE_HOME or the user's data)",
    )
    shared.add_device(parser)
    parser.add_argument("--foreign", action="store_true", help="extend a profile of another device all the same")
    shared.add_method(parser)
    shared.add_seed(parser)
    shared.add_setup(parser)
    shared.add_meter_choice(parser)
    shared.add_meter(parser)
    shared.add_output(parser)


def run(options: Namespace) -> None:
    shared.use_meter(options)
    if bool(options.model) == bool(options.space):
        raise UsageError(f"name either a model or --space with one of {', '.join(SPACES)} (see ampere profile --help)")
    asked_for = options.model or options.space
    model = asked_model(Namespace(**{**vars(options), "model": asked_for}))
    began = time.monotonic()
    made = run_profiling(model, options, Path(options.out) if options.out else None, options.target)
    seconds = time.monotonic() - began
    from ampere.cli.views.profile import show, to_json

    if options.json:
        print_json(to_json(made, seconds))
    else:
        show(made, seconds, asked_for, options)
