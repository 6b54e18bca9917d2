"""`ampere compare`: which of several models is cheapest, or where one is cheapest, with what probability."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ampere.cli import arguments, option_values
from ampere.cli.console import Display, headline, print_facts, print_json, print_table
from ampere.core import units
from ampere.core.errors import UsageError

if TYPE_CHECKING:
    from ampere.comparison import Comparison, Ranking

MORE_EXPENSIVE = "the probability that a row is more expensive than the first"


def add_arguments(parser: ArgumentParser) -> None:
    arguments.describe(
        parser,
        "Which of several models is cheapest to train, with what probability. They are estimated together, so that the "
        "uncertainty of layers that they share cancels. With several profiles or runtimes, in each of them. One model "
        "alone: with which profile or runtime it is cheapest.",
        "ampere compare lenet5 cnn5                              on this device",
        "ampere compare lenet5 cnn5 har                          any number, ranked",
        "ampere compare cnn5 --runtimes torch,jax,mnn            one model",
        "ampere compare cnn5 --profile torch.json --profile jax.json",
        "ampere compare small.py:build large.py:build --input 10x3x32x32",
        "ampere compare lenet5 har --profile phone.json --profile server.json --json",
    )
    parser.add_argument(
        "models", metavar="MODEL", nargs="+", help=f"{arguments.MODEL}, or a file of `ampere trace`; one or more"
    )
    parser.add_argument(
        "--runtimes",
        metavar="LIST",
        type=option_values.runtimes,
        default=(),
        help="compare in each of these runtimes, as in torch,jax; each is profiled first where needed",
    )
    arguments.add_input(parser)
    arguments.add_allocator(parser, "system")
    arguments.add_memory(parser, "leave out models whose training may take more memory")
    arguments.add_device(parser)
    arguments.add_profile_choice(parser, several=True)
    arguments.add_setup(parser)
    arguments.add_meter(parser, "the profile's own")
    arguments.add_output(parser)


def run(options: Namespace) -> None:
    from ampere.api import compare
    from ampere.comparison import Ranking

    _check(options)
    with arguments.open_device(options) as device, Display(options.quiet) as display:
        asked = arguments.api_options(options, device, display, profile=None)
        models = [arguments.model(spec, options) for spec in options.models]
        result = compare(
            *models, profiles=options.profile, runtimes=options.runtimes, memory=options.memory, **vars(asked)
        )
    if options.json:
        print_json(result.to_json())
    elif isinstance(result, Ranking):
        show_ranking(result)
    else:
        show_comparison(result)


def _check(options: Namespace) -> None:
    if options.runtimes and (options.profile or options.runtime):
        other = "--profile, whose files name their runtimes" if options.profile else "--runtime"
        raise UsageError(f"--runtimes cannot be combined with {other}: leave out one of them")
    if len(options.models) == 1 and max(len(options.profile), len(options.runtimes)) < 2:
        raise UsageError(
            f"{options.models[0]} alone is compared with nothing: name a second MODEL, or two runtimes as in "
            "--runtimes torch,jax, or give --profile twice (see ampere compare --help)"
        )


# Several models: one sentence, a row a device (a row a model where there are more than two), and notes.


def show_comparison(comparison: Comparison) -> None:
    from ampere.cli.wording import place_column, setups

    place = place_column(comparison.one_device)
    headline(_first_line(comparison, place))
    batches = [entry.estimate.batch for entry in comparison.devices[0].entries]
    print_facts(setups([(device.name, device.setup) for device in comparison.devices], batches))
    print()
    scale, unit = units.joules_unit(max(entry.joules for d in comparison.devices for entry in d.entries))
    if comparison.models[2:]:
        columns = [place, "model", f">{unit}", ">ratio", ">90 %", ">more expensive"]
        print_table(columns, _ranked_rows(comparison, scale))
    else:
        models = [f">{name} [{unit}]" for name in comparison.models]
        print_table([place, *models, ">ratio", ">90 %", "cheaper", ">probability"], _pair_rows(comparison, scale))
    print()
    print_facts(_comparison_facts(comparison))


def _first_line(comparison: Comparison, place: str) -> str:
    from ampere.comparison import CONFIDENT

    devices = comparison.devices
    if len(devices) == 1:
        return comparison.sentence(devices[0])
    on, places = "in" if comparison.one_device else "on", f"{len(devices)} {place}s"
    word = "cheapest" if comparison.models[2:] else "cheaper"
    clear = [device for device in devices if device.probability >= CONFIDENT]
    for name in comparison.models:
        if len(clear) == len(devices) and all(device.cheapest.name == name for device in devices):
            least = units.probability(min(device.probability for device in devices))
            return f"{name} is {word} {on} each of {places} ({least} probability)"
    counts = {name: sum(device.cheapest.name == name for device in clear) for name in comparison.models}
    line = f"{word} of {places}: " + ", ".join(f"{name} {on} {count}" for name, count in counts.items())
    return line if sum(counts.values()) == len(devices) else f"{line}; elsewhere it is too close to call"


def _pair_rows(comparison: Comparison, scale: float) -> Iterator[tuple[str, ...]]:
    from ampere.comparison import CONFIDENT

    for device in comparison.devices:
        pair = device.pair(*comparison.models)
        low, high = pair.interval
        joules = [units.significant(device.entry(name).joules / scale) for name in comparison.models]
        cheaper = pair.cheaper if pair.probability >= CONFIDENT else "too close"
        probability = units.probability(pair.probability)
        yield device.name, *joules, f"{pair.ratio:.2f}", f"{low:.2f}-{high:.2f}", cheaper, probability


def _ranked_rows(comparison: Comparison, scale: float) -> Iterator[tuple[str, ...]]:
    for device in comparison.devices:
        for entry in device.entries:
            first = entry is device.cheapest
            low, high = entry.interval
            compared = f"{entry.ratio:.2f}", f"{low:.2f}-{high:.2f}", units.probability(entry.probability)
            joules = units.significant(entry.joules / scale)
            yield device.name if first else "", entry.name, joules, *(("1.00", "", "") if first else compared)


def _comparison_facts(comparison: Comparison) -> Iterator[tuple[str, str]]:
    from ampere.cli.wording import assumptions, conditions, meter_line, not_measured

    devices = comparison.devices
    if comparison.per == "example":
        yield "compared", "joules of one training example, because the batches differ"
    else:
        yield "compared", "joules of one training iteration"
    if comparison.models[2:]:
        yield "more expensive", MORE_EXPENSIVE
    for device in devices:
        for name in comparison.models:
            yield from not_measured(name, device.name, device.entry(name).estimate)
    if comparison.one_device:
        yield "device", devices[0].device
    yield from conditions([(device.name, device.normalized) for device in devices], comparison.one_device)
    yield from assumptions([device.cheapest.estimate.allocator for device in devices])
    for line in dict.fromkeys(meter_line(device.cheapest.estimate.meter) for device in devices):
        yield "joules", line
    if not comparison.one_meter:
        yield "note", "the devices' joules come from different meters: compare models in a row, not rows"


# One model with several profiles: where it is cheapest, a row a place, and notes.


def show_ranking(ranking: Ranking) -> None:
    from ampere.cli.wording import place_column, setups

    entries = ranking.entries
    headline(ranking.sentence)
    print_facts(setups([(entry.name, entry.setup) for entry in entries], [entry.estimate.batch for entry in entries]))
    print()
    scale, unit = units.joules_unit(entries[-1].estimate.joules)
    columns = [place_column(ranking.one_device), f">{unit}", ">±", ">ratio", ">90 %", ">more expensive"]
    print_table(columns, _places(ranking, scale))
    print()
    print_facts(_ranking_facts(ranking))


def _places(ranking: Ranking, scale: float) -> Iterator[tuple[str, ...]]:
    for entry in ranking.entries:
        joules, stddev = entry.estimate.joules / scale, entry.estimate.stddev / scale
        low, high = entry.interval
        compared = f"{entry.ratio:.2f}", f"{low:.2f}-{high:.2f}", units.probability(entry.probability)
        first = entry is ranking.cheapest
        yield (
            entry.name,
            units.significant(joules),
            units.significant(stddev, 2),
            *(("1.00", "", "") if first else compared),
        )


def _ranking_facts(ranking: Ranking) -> Iterator[tuple[str, str]]:
    from ampere.cli.wording import assumptions, conditions, meter_line, not_measured

    entries = ranking.entries
    yield "compared", "joules of one training iteration"
    yield "more expensive", MORE_EXPENSIVE
    if ranking.one_device:
        yield "device", ranking.cheapest.device
    for entry in entries:
        yield from not_measured(ranking.model, entry.name, entry.estimate)
    yield from conditions([(entry.name, entry.normalized) for entry in entries], ranking.one_device)
    yield from assumptions([entry.estimate.allocator for entry in entries])
    for line in dict.fromkeys(meter_line(entry.estimate.meter) for entry in entries):
        yield "joules", line
    if not ranking.one_meter:
        yield "note", "the joules come from different meters, or are modelled with different watts"
