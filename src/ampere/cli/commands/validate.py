"""`ampere validate`: estimates compared with real training."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ampere.cli import arguments, option_values
from ampere.cli.console import Display, bar, headline, notice, plot_path, print_facts, print_json, print_table
from ampere.core import units
from ampere.core.setup import ALLOCATORS

if TYPE_CHECKING:
    from ampere.evaluation.validation import Validation

REPEATED, MARK, BAR = "repeatability", "→", 12


def add_arguments(parser: ArgumentParser) -> None:
    arguments.describe(
        parser,
        "Really trains random networks like the model that the profile has not seen, each twice, and compares what was "
        "measured with the estimates of Ampere and of simpler methods. Profiles first where that is needed.",
        "ampere validate lenet5",
        "ampere validate resnet --networks 20 --seed 1 --plot resnet.png",
        "ampere validate cnn5 --methods additive,sequential,sequential_wallclock",
        "ampere validate net.py:build --networks 30 --json --no-plot",
        "ampere validate cnn5 --device simulated:xavier",
    )
    arguments.add_model(parser)
    parser.add_argument(
        "--rounds",
        metavar="N",
        type=option_values.count,
        default=4,
        help="blocks in each of the two measurements (default 4)",
    )
    parser.add_argument(
        "--networks", metavar="N", type=option_values.count, default=60, help="how many to train (default 60)"
    )
    parser.add_argument(
        "--plot", metavar="FILE", help="draw estimates against measurements (default validate-MODEL.png)"
    )
    parser.add_argument("--no-plot", action="store_true", help="draw nothing")
    parser.add_argument(
        "--methods",
        metavar="NAMES",
        help="compare these, separated by commas, or all; where a method needs measurements of its own, it is profiled "
        "for as long (default: all that can learn from the usual profile)",
    )
    parser.add_argument(
        "--baseline-samples",
        metavar="N",
        type=option_values.count,
        default=0,
        help="give methods that learn from isolated layers (neuralpower, kernels) this many measurements, however long "
        "that takes (default: as many as fit into the seconds)",
    )
    arguments.add_allocator(parser, "tuned")
    arguments.add_device(parser)
    arguments.add_profile_choice(parser)
    arguments.add_other_device(parser)
    arguments.add_setup(parser)
    arguments.add_output(parser)


def run(options: Namespace) -> None:
    from ampere.api import validate
    from ampere.baselines.answers import names

    methods = names(options.methods) if options.methods is not None else None
    model = arguments.trainable_model(options.model, options)
    name = (options.model if isinstance(model, str) else model.name).replace(":", "-").replace("/", "-")
    plot = plot_path(options.plot, options.no_plot, f"validate-{name}.png", options.quiet)
    with arguments.open_device(options) as device, Display(options.quiet) as display:
        asked = arguments.api_options(options, device, display)
        validation = validate(
            model,
            methods=methods,
            networks=options.networks,
            rounds=options.rounds,
            baseline_samples=options.baseline_samples,
            **vars(asked),
        )
    if options.json:
        print_json(validation.to_json())
    else:
        show(validation)
    if plot:
        from ampere.reporting import draw_validation

        draw_validation(validation.to_json(), plot)
        notice(f"drawn in {plot}", options.quiet)


def show(validation: Validation) -> None:
    ours = validation.mape[validation.method]
    tested = units.counted(len(validation.rows), "unseen network")
    headline(f"{validation.model}: estimates are {units.percent(ours)} off on {tested}")
    print()
    print_table(["  method", "what it is", ">profiled", ">MAPE", "|"], _rows(validation))
    print()
    print_facts(_facts(validation))


def _rows(validation: Validation) -> Iterator[tuple[str, ...]]:
    """The best first, with the profile's own method marked; measuring a second time is ranked among them."""
    from ampere.baselines.answers import title

    errors = {**validation.mape, REPEATED: validation.repeatability_mape}
    largest = max(errors.values()) or 1.0
    for method, error in sorted(errors.items(), key=lambda item: item[1]):
        what = "measuring the same networks a second time" if method == REPEATED else title(method)
        profiled = units.seconds(validation.seconds[method]) if method in validation.seconds else ""
        name = f"{MARK} {method}" if method == validation.method else f"  {method}"
        yield name, what, profiled, units.percent(error), bar(error / largest, BAR)


def _facts(validation: Validation) -> Iterator[tuple[str, str]]:
    from ampere.cli.wording import meter_line, setup_line

    yield "setup", setup_line(validation.setup)
    low, high = min(r.actual for r in validation.rows), max(r.actual for r in validation.rows)
    yield "networks", f"{len(validation.rows)}, of {units.joules(low)} to {units.joules(high)} per iteration"
    if validation.own_code:
        yield "trained", "by the model's own code, in the sizes that its function builds"
    for reason in dict.fromkeys(validation.left_out):
        yield "left out", f"{validation.left_out.count(reason)} more: {reason}"
    for method, reason in validation.unavailable.items():
        yield "not compared", f"{method}: {reason}"
    yield "coverage", f"{units.percent(validation.coverage90)} of them lie in the estimate's 90 % interval"
    simulated = "simulated " if validation.meter.simulated else ""
    yield "profiling", f"{simulated}{units.seconds(validation.profiling_seconds)}"
    if own := {m: n for m, n in validation.measurements.items() if n != validation.measurements[validation.method]}:
        yield "measurements", ", ".join(f"{method} {count:,}" for method, count in own.items())
    yield "device", validation.device
    yield "joules", meter_line(validation.meter)
    yield "assumes", ALLOCATORS[validation.allocator]
