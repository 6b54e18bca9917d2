"""Options that several commands share, each described once.

    words -> argparse, with the types of `option_values` -> Namespace -> typed arguments of the API

A Namespace goes no further than a command's own file.
"""

from __future__ import annotations

import gc
import json
from argparse import ArgumentParser, Namespace, _ActionsContainer, _ArgumentGroup
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ampere.cli import option_values
from ampere.core.errors import UsageError
from ampere.core.setup import ALLOCATORS, DTYPES, OPTIMIZERS
from ampere.runtimes.table import OURS

if TYPE_CHECKING:
    from ampere.api import Options, ResolvedModel, RunPlan
    from ampere.devices import Device
    from ampere.models.loading import LoadedModel

    from .console import Display

MODEL = "a family (lenet5 cnn5 har lstm transformer resnet), file.py:function or package.module:function"
TIMINGS = ("yardstick", "wallclock")
GROUPS = ("layer", "block")


def describe(parser: ArgumentParser, what: str, *examples: str) -> None:
    parser.description = what
    parser.epilog = "\n  ".join(["examples:", *examples])


def add_model(parser: ArgumentParser, more: str = "", optional: bool = False) -> None:
    parser.add_argument("model", metavar="MODEL", nargs="?" if optional else None, help=MODEL + more)
    add_input(parser)


def add_input(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("model")
    group.add_argument(
        "--input",
        metavar="SHAPE",
        help="the model's input, where its function returns none: 10x1x28x28 or 8x32:int64<1000, batch first; "
        "for batches of several shapes '3*8x32 | 1*8x64' (estimate and measure)",
    )
    group.add_argument(
        "--batch", metavar="N", type=option_values.count, help="train with batches of N (default: as the input is)"
    )
    group.add_argument(
        "--arg",
        metavar="NAME=VALUE",
        type=option_values.factory_argument,
        action="append",
        default=[],
        help="an argument of the model's function, as in --arg width=32; may be repeated",
    )


def add_device(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--device",
        metavar="DEVICE",
        default="local",
        help="local (default), ssh://user@host[:port][?python=PATH], tcp://host:port, "
        "simulated:NAME (xavier tx2 phone-android phone-ios server) or replayed:FILE",
    )
    parser.add_argument(
        "--on",
        metavar="PROCESSOR",
        help="what trains there: cpu (default), cuda, cuda:1, mps, xpu, or auto for what PyTorch reports",
    )


def add_setup(parser: ArgumentParser, runtime: bool = True, optimizers: bool = True) -> None:
    """How a model is trained. A search trains with PyTorch, and names several optimizers in an option of its own."""
    group = parser.add_argument_group("training setup (a profile holds one setup)")
    if runtime:
        add_runtime(group, f"the library that trains: {', '.join(OURS)}, or one that a package adds (default torch)")
    if optimizers:
        words = f"{', '.join(OPTIMIZERS)} (default sgd)"
        group.add_argument("--optimizer", metavar="NAME", type=option_values.optimizer, choices=OPTIMIZERS, help=words)
    group.add_argument(
        "--dtype",
        metavar="TYPE",
        type=option_values.dtype,
        choices=tuple(DTYPES),
        help=f"{', '.join(DTYPES)} (default float32)",
    )
    group.add_argument(
        "--threads",
        metavar="N",
        type=option_values.count,
        help="threads that train (default: as PyTorch on the device)",
    )
    group.add_argument(
        "--compile-limit",
        metavar="S",
        type=option_values.seconds,
        help="give up on a network that compiles for longer than S seconds (default: AMPERE_COMPILE_LIMIT, else 120)",
    )


def add_runtime(parser: _ActionsContainer, words: str) -> None:
    parser.add_argument("--runtime", metavar="RUNTIME", type=option_values.runtime, help=words)


def add_meter(parser: ArgumentParser, default: str = "5 W: between a phone's big core and a server's") -> None:
    group = parser.add_argument_group("meter")
    group.add_argument(
        "--watts-per-core",
        metavar="W",
        type=option_values.watts,
        help=f"watts of a busy core, where joules are modelled and not measured (default {default})",
    )


def add_meter_choice(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--meter",
        metavar="NAME",
        help="nvml, powercap, hwmon, battery, zeus, cpu-time, adb, log:FILE,time=COLUMN,power=COLUMN:mW or "
        "log:deferred (default: AMPERE_METER, else a fast counter, else cpu-time)",
    )


def add_output(parser: ArgumentParser) -> _ArgumentGroup:
    group = parser.add_argument_group("output")
    group.add_argument(
        "--json", action="store_true", help="one JSON object on standard output, all else on standard error"
    )
    group.add_argument("--quiet", action="store_true", help="no progress and no notices")
    return group


def add_allocator(parser: ArgumentParser, default: str) -> None:
    meaning = "; ".join(f"{name}: {words}" for name, words in ALLOCATORS.items())
    parser.add_argument(
        "--allocator",
        choices=ALLOCATORS,
        default=default,
        help=f"which training loop the figures assume (default {default}). {meaning}",
    )


def add_profile_choice(parser: ArgumentParser, several: bool = False) -> None:
    """For commands that profile first where the profile does not cover the model."""
    group = parser.add_argument_group("profile")
    usual = "(default: this device's own, extended where needed)"
    if several:
        words = f"use this profile as it is; may be repeated {usual}"
        group.add_argument("--profile", metavar="FILE", action="append", default=[], help=words)
    else:
        group.add_argument("--profile", metavar="FILE", help=f"use this profile as it is {usual}")
    group.add_argument(
        "--seconds",
        metavar="S",
        type=option_values.seconds,
        help="time to profile, if needed (default 15; a runtime that compiles: 120; a slow counter: more)",
    )
    group.add_argument("--no-profiling", action="store_true", help="never profile; say what is missing instead")
    add_seed(group)


def add_other_device(parser: _ActionsContainer) -> None:
    parser.add_argument(
        "--allow-other-device", action="store_true", help="use the profile even if it was made on another device"
    )


def add_method(parser: _ActionsContainer) -> None:
    """How a profile is made, where not as usual."""
    from ampere.profiling.strategies import STRATEGIES

    parser.add_argument(
        "--method",
        metavar="M",
        default="additive",
        help=f"which measurements to take and how to learn from them: {', '.join(STRATEGIES)} (default additive)",
    )
    parser.add_argument(
        "--timing",
        choices=TIMINGS,
        default="yardstick",
        help="yardstick (default): each network is timed in turns with a reference step; "
        "wallclock: by the clock alone, as in the paper",
    )


def add_budget(parser: ArgumentParser, of: str, confidence_default: float, must: str) -> None:
    """`of` is what a share is of; `must` what the confidence is about."""
    parser.add_argument(
        "--budget",
        metavar="B",
        required=True,
        help=f"share of {of} (50%%), joules of an iteration (5mJ), joules of a run with --iterations, "
        "or share of a battery with --battery and --iterations",
    )
    parser.add_argument(
        "--iterations", metavar="N", type=option_values.count, help="how many iterations the budget is for"
    )
    add_battery(parser)
    words = f"probability with which {must} (default {confidence_default:.0%}%)"
    parser.add_argument(
        "--confidence", metavar="P", type=option_values.confidence, default=confidence_default, help=words
    )


def add_memory(parser: _ActionsContainer, words: str) -> None:
    parser.add_argument("--memory", metavar="SIZE", type=option_values.memory, help=f"{words}: 4GB, 512MB or 2GiB")


def add_battery(parser: _ActionsContainer) -> None:
    parser.add_argument(
        "--battery",
        metavar="ENERGY",
        type=option_values.energy,
        help="what a full battery holds: 15Wh, 54kJ, 5000mAh@3.85V",
    )


def add_run(parser: ArgumentParser, whole: bool = False) -> None:
    group = parser.add_argument_group("whole training run")
    group.add_argument("--iterations", metavar="N", type=option_values.count, help="default: one iteration only")
    group.add_argument(
        "--epochs", metavar="N", type=option_values.count, help="with --samples; an epoch is samples / batch iterations"
    )
    group.add_argument("--samples", metavar="M", type=option_values.count, help="examples in the training set")
    add_battery(group)
    if not whole:
        return
    group.add_argument(
        "--evaluate-every",
        metavar="EVERY",
        help="evaluate every 1epoch, or every so many iterations (a bare number is in the unit of the run's length)",
    )
    group.add_argument(
        "--evaluation-samples",
        metavar="M",
        type=option_values.count,
        help="examples in an evaluation (default: a fifth of --samples)",
    )
    group.add_argument(
        "--data",
        metavar="LOADER",
        help="file.py:function that returns the batches, or digits, mnist:FOLDER: timed once",
    )
    group.add_argument(
        "--accumulate",
        metavar="N",
        type=option_values.count,
        default=1,
        help="update weights every N iterations (default 1)",
    )
    group.add_argument("--checkpoint-every", metavar="EVERY", help="write a checkpoint every 1epoch or 500 iterations")
    group.add_argument(
        "--idle",
        metavar="POWER",
        type=option_values.watts,
        help="what the device draws anyway: its screen and all that idles, as 8W "
        "(default: what the meter read at rest, where it did)",
    )
    group.add_argument("--price", metavar="MONEY", help="what a kilowatt-hour costs: 0.30/kWh, 0.30EUR/kWh")
    group.add_argument(
        "--grid",
        metavar="GRID",
        action="append",
        help="carbon of a kilowatt-hour: 400g/kWh, or the codes of countries, as DE,FR,US or WORLD; may be repeated",
    )
    group.add_argument(
        "--pue", metavar="FACTOR", type=option_values.number, help="factor of the facility, such as 1.2 (default 1)"
    )


def add_group_by(parser: _ActionsContainer, usual: str = "default layer", default: str | None = "layer") -> None:
    words = f"block: equal blocks of layers as one row, with a count ({usual})"
    parser.add_argument("--group-by", choices=GROUPS, default=default, help=words)


def add_seed(parser: _ActionsContainer) -> None:
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="seed of all random choices (default 0)")


# From a Namespace to what the API takes.


def given_setup(options: Namespace) -> dict[str, Any]:
    """The training setup as far as the user gave it."""
    names = ("runtime", "optimizer", "dtype", "threads")
    return {name: value for name in names if (value := getattr(options, name, None)) is not None}


def check_run(options: Namespace) -> None:
    """Refuse a length of the run that is given twice, or by half."""
    if options.iterations and (options.epochs or options.samples):
        raise UsageError("--iterations and --epochs both give the length of the run: give one of them")
    if bool(options.epochs) != bool(options.samples):
        missing = "--samples, the number of examples in an epoch" if options.epochs else "--epochs"
        raise UsageError(f"the number of iterations is not known: give {missing} as well")


def run_plan(options: Namespace) -> RunPlan:
    """The whole run that is asked about."""
    from dataclasses import fields

    from ampere.api import RunPlan

    return RunPlan(**{field.name: getattr(options, field.name) for field in fields(RunPlan)})


def open_device(options: Namespace, watts_per_core: float | None = None) -> Device:
    """The device of this command, opened once with `with`."""
    from ampere.devices import Device

    return Device(
        options.device,
        on=getattr(options, "on", None),
        meter=getattr(options, "meter", None),
        watts_per_core=watts_per_core,
        compile_limit=getattr(options, "compile_limit", None),
        seed=getattr(options, "seed", 0),
    )


def api_options(options: Namespace, device: Device, display: Display, **changed: Any) -> Options:
    """What the API takes, of a command that has the options of a device, a setup and a profile."""
    from ampere.api import Options

    names = ("method", "timing", "seconds", "watts_per_core", "allocator", "allow_other_device", "seed")
    given = {name: getattr(options, name) for name in names if hasattr(options, name)}
    return Options(
        **{
            "device": device,
            "profile": getattr(options, "profile", None),
            **given_setup(options),
            **given,
            "extend": not getattr(options, "no_profiling", False),
            "progress": display.progress,
            "notice": display.notice,
            **changed,
        }
    )


def model(spec: str, options: Namespace) -> str | LoadedModel:
    """A model as the API takes it: a name, or what the user's function builds with the arguments that are given."""
    arguments = dict(options.arg)
    if spec.endswith(".json"):
        if options.input or options.batch or arguments:
            raise UsageError(f"{spec} has its input already: trace the model again with another one")
        return spec
    if not (options.input or options.batch or arguments):
        return spec
    from ampere.models.loading import load_model

    if options.batch:
        arguments["batch"] = options.batch
    return load_model(spec, options.input, **arguments)


def subject(spec: str, options: Namespace, named: Callable[..., Any] = model) -> ResolvedModel:
    """The model, found and built; over all shapes of its batches where --input names several."""
    from ampere.api.models import VariedModel, resolve
    from ampere.tracing.inputs import parse_shapes

    shapes = parse_shapes(options.input) if options.input and "|" in options.input else []
    with _collecting_later():
        if not shapes:
            return resolve(named(spec, options))
        each = [(share, Namespace(**{**vars(options), "input": shape})) for share, shape in shapes]
        return VariedModel([(share, resolve(named(spec, asked))) for share, asked in each])


@contextmanager
def _collecting_later() -> Iterator[None]:
    """All that importing PyTorch makes stays: looking through it for garbage takes a tenth of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def trainable_model(spec: str, options: Namespace) -> str | LoadedModel:
    if spec.endswith(".json"):
        raise UsageError(f"{spec} is a network file, which cannot be trained: name the model itself")
    return model(spec, options)


def model_words(spec: str, options: Namespace) -> list[str]:
    """The model as it is written on a command line, with its own options, for a command to type next."""
    values = [f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in options.arg]
    return [
        spec,
        *(["--input", options.input] if options.input else []),
        *(["--batch", str(options.batch)] if options.batch else []),
        *(word for value in values for word in ("--arg", value)),
    ]
