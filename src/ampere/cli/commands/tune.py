"""`ampere tune`: what makes training cheaper."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ampere.cli import arguments, option_values
from ampere.cli.console import Display, headline, print_facts, print_json, print_table
from ampere.core import units

if TYPE_CHECKING:
    from ampere.profiling.tuning import Advice, Tuning

ALLOWABLE = ("bfloat16", "compile", "batch")


def add_arguments(parser: ArgumentParser) -> None:
    arguments.describe(
        parser,
        "Tries on the model's own code what may make training cheaper without changing what is learnt: the allocator's "
        "settings, threads, memory format, fused optimizers. Each change is tried in pairs of fresh processes. What "
        "seems to save is tried a second time, and only what that confirms is advised.",
        "ampere tune net.py:build                     about two minutes",
        "ampere tune net.py:build --optimizer adamw --seconds 300",
        "ampere tune net.py:build --allow compile     these as well",
    )
    arguments.add_model(parser)
    parser.add_argument(
        "--seconds", metavar="S", type=option_values.seconds, default=120.0, help="about how long (default 120)"
    )
    parser.add_argument(
        "--allow",
        metavar="NAMES",
        type=_allowed,
        default=(),
        help=f"also try what alters training, or compiles: some of {', '.join(ALLOWABLE)}",
    )
    arguments.add_setup(parser, runtime=False)
    arguments.add_meter(parser)
    arguments.add_output(parser)


def _allowed(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in ALLOWABLE:
            raise ArgumentTypeError(f"there is no {name!r} to allow: choose from {', '.join(ALLOWABLE)}")
    return names


def run(options: Namespace) -> None:
    from ampere.api import tune

    model = arguments.trainable_model(options.model, options)
    with Display(options.quiet) as display:
        found = tune(
            model,
            seconds=options.seconds,
            allow=options.allow,
            watts_per_core=options.watts_per_core,
            progress=display.progress,
            notice=display.notice,
            **arguments.given_setup(options),
        )
    if options.json:
        print_json(found.to_json())
    else:
        show(found)


def show(found: Tuning) -> None:
    from ampere.cli.wording import setup_line

    best = found.advice[0] if found.advice else None
    saves = f"{best.words} saves {units.percent(best.saving)}" if best else "nothing that was tried saves for certain"
    headline(f"{found.network}: {units.joules(found.joules)} per iteration; {saves}")
    print_facts([("setup", setup_line(found.setup, found.batch))])
    print()
    print_table(["change", ">saves", "90 %", ">probability", "so"], map(_row, found.tried))
    print()
    print_facts(_lines(found))


def _row(one: Advice) -> tuple[str, ...]:
    if one.failed:
        return one.words, "", "", "", f"not tried: {one.failed}"
    low, high = map(units.percent, one.interval)
    verdict = "confirmed by a second run" if one.confirmed else "not confirmed"
    return one.words, units.percent(one.saving), f"{low} to {high}", units.probability(one.probability), verdict


def _lines(found: Tuning) -> Iterator[tuple[str, str]]:
    from ampere.cli.wording import meter_line

    for one in found.advice:
        saved = f"{units.joules(one.joules_saved)} of each iteration"
        alters = f"; it changes {one.alters}" if one.alters else ""
        yield one.change, f"saves {saved}{alters}: {'; '.join(one.paste)}"
    yield "joules", meter_line(found.meter)
    yield "savings", "of each change alone; two of them together may save less than their sum"
