"""Options that commands share, each said once, and the records made of them."""

from __future__ import annotations

import os
from argparse import Action, ArgumentParser, Namespace, _ActionsContainer
from typing import Any

from ampere.cli import values
from ampere.core.errors import UsageError
from ampere.core.setup import ALLOCATORS, DTYPES, OPTIMIZERS, PROTOCOLS, TrainingSetup
from ampere.runtimes.table import OURS

SETUP = ("runtime", "optimizer", "dtype", "threads")
WITHOUT_HARDWARE = ("simulated:", "replayed:")
MODEL = "a family (lenet5 cnn5 har lstm transformer resnet), file.py:function or package.module:function"


def describe(parser: ArgumentParser, what: str, *examples: str) -> None:
    parser.description = what
    parser.epilog = "\n  ".join(["examples:", *examples])


def add_model(parser: ArgumentParser, more: str = "", optional: bool = False) -> None:
    parser.add_argument("model", metavar="MODEL", nargs="?" if optional else None, help=MODEL + more)
    add_input(parser)


def add_input(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--input",
        metavar="SHAPE",
        help="its input, where its function does not return one: 10x1x28x28 or 8x32:int64<1000, the batch first",
    )
    parser.add_argument("--batch", metavar="N", type=values.count, help="call the model's function with batch=N")


def add_device(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--device",
        metavar="DEVICE",
        default="local",
        help="local (default), ssh://user@host[:port][?python=PATH], tcp://host:port, "
        "simulated:NAME (xavier tx2 phone-android phone-ios server) or replayed:FILE",
    )


def add_setup(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("how it is trained (one profile speaks of one such setup)")
    add_runtime(group, f"the library that trains: {', '.join(OURS)}, or one that a package brings (default torch)")
    group.add_argument("--optimizer", choices=OPTIMIZERS, help="default sgd")
    group.add_argument("--dtype", choices=tuple(DTYPES), help="default float32")
    group.add_argument("--threads", metavar="N", type=values.count, help="default 1")
    parser.add_argument(
        "--compile-limit",
        metavar="S",
        type=values.seconds,
        action=ForDevices,
        help="give up what compiles for longer than S seconds (default: AMPERE_COMPILE_LIMIT, else 120)",
    )


def add_runtime(parser: _ActionsContainer, words: str) -> None:
    parser.add_argument("--runtime", metavar="RUNTIME", type=values.runtime, help=words)


class ForDevices(Action):
    """An option that every device reads from the environment when it is opened."""

    def __call__(self, parser: ArgumentParser, options: Namespace, value: Any, written: str | None = None) -> None:
        setattr(options, self.dest, value)
        os.environ[f"AMPERE_{self.dest.upper()}"] = str(value)


def add_meter(parser: ArgumentParser, default: str = "5 W: between a phone's big core and a server's") -> None:
    group = parser.add_argument_group("meter")
    group.add_argument(
        "--watts-per-core",
        metavar="W",
        type=values.watts,
        help=f"watts of a busy core, where joules are modelled and not measured (default {default})",
    )


def add_meter_choice(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--meter",
        metavar="NAME",
        help="powercap, hwmon, battery, zeus, cpu-time, adb, log:FILE,time=COLUMN,power=COLUMN:mW or log:later "
        "(default: AMPERE_METER, else a fast counter, else cpu-time)",
    )


def use_meter(options: Namespace) -> None:
    """Workers inherit it."""
    if options.meter and options.device.startswith(WITHOUT_HARDWARE):
        raise UsageError(f"{options.device} has a meter of its own: leave out --meter")
    if options.meter:
        os.environ["AMPERE_METER"] = options.meter


def add_output(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument(
        "--json", action="store_true", help="one JSON object on standard output, all else on standard error"
    )
    group.add_argument("--quiet", action="store_true", help="no progress and no notices")


def add_allocator(parser: ArgumentParser, default: str) -> None:
    meaning = "; ".join(f"{name}: {words}" for name, words in ALLOCATORS.items())
    parser.add_argument(
        "--allocator",
        choices=ALLOCATORS,
        default=default,
        help=f"what figures stand for (default {default}). {meaning}",
    )


def add_profiling(parser: ArgumentParser, several: bool = False) -> None:
    """For commands that profile first where the device is not known well enough."""
    group = parser.add_argument_group("profile")
    usual = "(default: this device's own, extended if needed)"
    if several:
        words = f"use this one as it is, of any device; may be given several times {usual}"
        group.add_argument("--profile", metavar="FILE", action="append", help=words)
        parser.set_defaults(foreign=False)
    else:
        group.add_argument("--profile", metavar="FILE", help=f"use this one as it is {usual}")
        group.add_argument("--foreign", action="store_true", help="use a profile of another device all the same")
    group.add_argument(
        "--seconds",
        metavar="S",
        type=values.seconds,
        help="time to profile, if needed (default 15; a runtime that compiles: 120; a slow counter: more)",
    )
    group.add_argument("--no-profiling", action="store_true", help="never profile; say what is not known instead")
    add_seed(group)


def add_method(parser: _ActionsContainer) -> None:
    """How a profile is made, where not as usual."""
    from ampere.profiling.strategies import STRATEGIES

    parser.add_argument(
        "--method",
        metavar="M",
        default="additive",
        help=f"how to gather measurements and learn from them: {', '.join(STRATEGIES)} (default additive)",
    )
    parser.add_argument(
        "--protocol",
        choices=PROTOCOLS,
        default="yardstick",
        help="time each block beside a yardstick step, or by the clock as the paper does (default yardstick)",
    )


def add_budget(parser: ArgumentParser, of: str, confidence: float, must: str) -> None:
    """`of` is what a share is of; `must` what the confidence is about."""
    parser.add_argument(
        "--budget",
        metavar="B",
        required=True,
        help=f"share of {of} (50%%), joules of an iteration (5mJ), joules of a run with --iterations, "
        "or share of a battery with --battery and --iterations",
    )
    parser.add_argument("--iterations", metavar="N", type=values.count, help="how many iterations the budget is for")
    parser.add_argument("--battery", metavar="ENERGY", help="what a full battery holds: 15Wh, 54kJ")
    words = f"with which probability {must}, as far as estimates know themselves (default {confidence:.0%}%)"
    parser.add_argument("--confidence", metavar="P", type=values.confidence, default=confidence, help=words)


def add_seed(parser: _ActionsContainer) -> None:
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of what is chosen at random (default 0)")


def setup_of(options: Namespace) -> TrainingSetup:
    """With the device's own runtime where none was named."""
    from ampere.devices import setup_on

    return setup_on(options.device, TrainingSetup(**_given(options)), any_runtime=options.runtime is None)


def how_of(options: Namespace) -> dict[str, str]:
    """Commands that do not ask for a method mean ours."""
    usual = {"method": "additive", "protocol": "yardstick"}
    return {name: getattr(options, name, default) for name, default in usual.items()}


def check_setup(options: Namespace, made_with: TrainingSetup, where: str) -> None:
    """A file speaks of its own setup: asking it about another one is a mistake, not a wish."""
    for name, asked in _given(options).items():
        known = getattr(made_with, name)
        if asked != known:
            raise UsageError(f"{where} was made with {name} {known}, not {asked}: leave out --{name}, or profile again")


def same_again(options: Namespace, setup: TrainingSetup) -> str:
    """What follows `ampere profile MODEL` so that it speaks of the same device and setup; "" where both are usual."""
    usual = TrainingSetup()
    asked = {name: getattr(setup, name) for name in SETUP if getattr(setup, name) != getattr(usual, name)}
    if options.device != "local":
        asked["device"] = options.device
        if options.runtime is None:  # it is the device's own
            asked.pop("runtime", None)
    return "".join(f" --{name} {value}" for name, value in asked.items())


def _given(options: Namespace) -> dict[str, Any]:
    asked = {name: getattr(options, name) for name in SETUP}
    return {name: value for name, value in asked.items() if value is not None}
