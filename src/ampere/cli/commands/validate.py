"""`ampere validate`: estimates against real training."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ampere.cli import options as shared
from ampere.cli import values
from ampere.cli.baseline_profiles import rivals
from ampere.cli.console import notice, print_json
from ampere.cli.ensure_profile import ensure_profile
from ampere.cli.model_argument import asked_model, name_of
from ampere.cli.picture import picture_place
from ampere.cli.progress import of_validating, reporting
from ampere.core.errors import DeviceError

if TYPE_CHECKING:
    from ampere.evaluation.validation import Validation
    from ampere.models.loading import LoadedModel
    from ampere.storage.profile import Profile


def add_arguments(parser: ArgumentParser) -> None:
    shared.describe(
        parser,
        "Really trains random networks like the model that the profile never saw, each twice, and compares what was "
        "measured with the estimates of Ampere and of simpler methods. Profiles first where that is needed.",
        "ampere validate lenet5",
        "ampere validate resnet --networks 20 --seed 1 --plot resnet.png",
        "ampere validate cnn5 --methods additive,sequential,sequential_wallclock",
        "ampere validate net.py:build --networks 30 --json --no-plot",
        "ampere validate cnn5 --device simulated:xavier",
    )
    shared.add_model(parser)
    parser.add_argument(
        "--rounds", metavar="N", type=values.count, default=4, help="blocks in each of the two measurements (default 4)"
    )
    parser.add_argument("--networks", metavar="N", type=values.count, default=60, help="how many to train (default 60)")
    parser.add_argument(
        "--plot", metavar="FILE", help="draw estimates against measurements (default validate-MODEL.png)"
    )
    parser.add_argument("--no-plot", action="store_true", help="draw nothing")
    parser.add_argument(
        "--methods",
        metavar="NAMES",
        help="compare these, separated by commas, or all; each on measurements of its own where it needs them, "
        "profiled for as long (default: all that can learn from the usual profile)",
    )
    shared.add_allocator(parser, "tuned")
    shared.add_device(parser)
    shared.add_profiling(parser)
    shared.add_setup(parser)
    shared.add_output(parser)


def run(options: Namespace) -> None:
    model = asked_model(options)
    methods = _methods(options)
    plot = picture_place(options, f"validate-{name_of(model).replace(':', '-')}.png")
    profile = ensure_profile(model, options).profile
    others = rivals(model, options, methods or ())
    validation = _validate(model, profile, others, methods, options)
    if options.json:
        print_json(validation.to_json())
    else:
        from ampere.cli.views.validation import show

        show(validation)
    if plot:
        _draw(validation, plot, options.quiet)


def _methods(options: Namespace) -> tuple[str, ...] | None:
    if options.methods is None:
        return None
    from ampere.baselines.answers import names

    return names(options.methods)


def _validate(
    model: str | LoadedModel,
    profile: Profile,
    others: list[Profile],
    methods: tuple[str, ...] | None,
    options: Namespace,
) -> Validation:
    from ampere.api import validate

    with reporting(f"training {options.networks} networks", options.quiet) as report:
        validation = validate(
            model,
            profile,
            others=others,
            methods=methods,
            networks=options.networks,
            rounds=options.rounds,
            seed=options.seed,
            allocator=options.allocator,
            device=options.device,
            on_progress=of_validating(report),
        )
    if not validation.rows:
        told = next(iter(validation.left_out), "close other programs and try again")
        raise DeviceError(f"no network gave a usable figure: {told}")
    return validation


def _draw(validation: Validation, path: Path, quiet: bool) -> None:
    from ampere.reporting import draw_validation

    draw_validation(validation.to_json(), path)
    notice(f"drawn in {path}", quiet)
