"""`ampere prune`: the same model with fewer channels, inside an energy budget."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ampere.cli import arguments
from ampere.cli.console import Display, headline, print_facts, print_json, print_table
from ampere.core import units

if TYPE_CHECKING:
    from ampere.pruning.result import Measured, Pruned

STRATEGIES = ("energy", "magnitude", "random", "flops", "energy_aware")
FIXED_SHOWN = 4


def add_arguments(parser: ArgumentParser) -> None:
    arguments.describe(
        parser,
        "Removes channels of a model until an iteration of its training fits an energy budget. The model is not "
        "trained; you train the result. The first time, the device is profiled for some seconds. Original and result "
        "are then trained in turns on made-up data for some seconds, to check that the budget holds.",
        "ampere prune cnn5 --budget 50%                 what would be removed",
        "ampere prune net.py:build --budget 5mJ --confidence 90% --out pruned.json",
        "ampere prune resnet --budget 20kJ --iterations 100000 --out pruned.pt2",
        "ampere prune har --budget 10% --battery 15Wh --iterations 50000",
    )
    arguments.add_model(parser)
    arguments.add_budget(parser, "what an iteration costs now", 0.5, "the budget must hold")
    arguments.add_memory(parser, "a second budget: prune further until training takes no more memory")
    parser.add_argument(
        "--strategy",
        choices=STRATEGIES,
        default="energy",
        help="energy (default): least importance lost per joule saved; magnitude: smallest weights first; random: any "
        "widths that fit; flops: as energy, with FLOPs in place of joules, for comparison; energy_aware: layer by "
        "layer, the most expensive first, with outputs restored by least squares (Yang et al. 2017), for comparison",
    )
    parser.add_argument(
        "--keep", metavar="LAYER", action="append", default=[], help="leave this layer as it is; may be repeated"
    )
    parser.add_argument(
        "--no-check", action="store_true", help="only estimate: do not measure what the result really costs"
    )
    parser.add_argument("--out", metavar="FILE", help="save the pruned model: .pt2, or .json with a file of weights")
    arguments.add_allocator(parser, "system")
    arguments.add_device(parser)
    arguments.add_profile_choice(parser)
    arguments.add_other_device(parser)
    arguments.add_setup(parser)
    arguments.add_meter(parser, "the profile's own")
    arguments.add_output(parser)


def run(options: Namespace) -> None:
    from ampere.api import prune

    model = arguments.trainable_model(options.model, options)
    with arguments.open_device(options) as device, Display(options.quiet) as display:
        pruned = prune(
            model,
            budget=options.budget,
            strategy=options.strategy,
            keep=options.keep,
            confidence=options.confidence,
            iterations=options.iterations,
            battery=options.battery,
            memory=options.memory,
            check=False if options.no_check else None,
            out=options.out,
            **vars(arguments.api_options(options, device, display)),
        )
    if options.json:
        written = [str(path) for path in pruned.written]
        print_json({**pruned.to_json(), "unmeasured": pruned.unmeasured, "written": written})
    else:
        show(pruned)


def show(pruned: Pruned) -> None:
    before, after = pruned.before.joules, pruned.after.joules
    if pruned.measured:
        before, after = pruned.measured.joules_before, pruned.measured.joules_after
    headline(
        f"{pruned.before.network or 'network'}: {units.joules(before)} -> {units.joules(after)} an iteration, "
        f"{units.percent(pruned.share)} ({pruned.strategy})"
    )
    print()
    scale, unit = units.joules_unit(before)
    columns = ["layer", "kind", ">channels", ">pruned", f">{unit}", ">pruned", ">left"]
    print_table(columns, _rows(pruned, scale))
    print()
    print_facts([*_facts(pruned), *(("written", str(path)) for path in pruned.written)])


def _rows(pruned: Pruned, scale: float) -> Iterator[tuple[str, ...]]:
    for change in pruned.layers():
        yield (
            change.name or "-",
            change.kind,
            _channels(change.channels_before),
            _channels(change.channels_after) if change.channels_after != change.channels_before else "",
            units.significant(change.joules_before / scale),
            units.significant(change.joules_after / scale),
            units.percent(change.joules_after / change.joules_before) if change.joules_before else "",
        )
    old, new = (units.significant(estimate.layers[-1].joules / scale) for estimate in (pruned.before, pruned.after))
    yield "(rest of step)", "", "", "", old, new, ""


def _channels(channels: tuple[int, int]) -> str:
    return f"{channels[0]:,} - {channels[1]:,}"


def _facts(pruned: Pruned) -> Iterator[tuple[str, str]]:
    from ampere.cli.wording import memory_lines, meter_line, setup_line, some

    yield "setup", setup_line(pruned.after.setup, pruned.after.batch)
    confidence = f" with {units.percent(pruned.confidence)} confidence" if pruned.confidence > 0.5 else ""
    bound = f"{units.joules(pruned.bound_joules)}{confidence}"
    if pruned.inside:
        yield "budget", f"{units.joules(pruned.budget_joules)} an iteration; the pruned model stays below {bound}"
    else:
        yield "over budget", f"{units.joules(pruned.budget_joules)} an iteration were allowed; it takes {bound}"
    yield ("measured", _measured(pruned.measured)) if pruned.measured else ("not measured", pruned.unmeasured)
    if pruned.memory:
        yield next(iter(memory_lines(pruned.memory)))
    for layer in pruned.fixed[:FIXED_SHOWN]:
        yield "left as it is", layer
    if len(pruned.fixed) > FIXED_SHOWN:
        yield "left as it is", f"and {len(pruned.fixed) - FIXED_SHOWN} more"
    yield "joules", meter_line(pruned.after.meter)
    if pruned.after.extrapolated:
        yield "extrapolated", some(pruned.after.extrapolated)
    yield "next", "train it: removing channels costs accuracy, which training brings back"


def _measured(seen: Measured) -> str:
    share = f"{100 * seen.share:.1f} % of the original's (± {100 * seen.share * seen.share_relative_stddev:.1f})"
    return f"{share}, both trained in turns for {seen.rounds} rounds; the layers above are estimates"
