"""`ampere profile`: learn what layers cost on a device."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ampere.cli import arguments, option_values
from ampere.cli.console import Display, headline, print_facts, print_json
from ampere.core import units
from ampere.core.errors import UsageError

if TYPE_CHECKING:
    from ampere.profiling.running import ProfilingResult

SPACES = ("cnn", "transformers", "recurrent")
REFUSALS_SHOWN = 3
PURPOSES = {  # one, several
    "layer": ("single layer", "single layers"),
    "variant": ("piece of a network", "pieces of networks"),
    "network": ("network", "networks"),
    "opaque": ("unknown module", "unknown modules"),
    "stage": ("stage of an isolated layer", "stages of isolated layers"),
    "kernel": ("stage of an isolated operation", "stages of isolated operations"),
}


def add_arguments(parser: ArgumentParser) -> None:
    arguments.describe(
        parser,
        "Trains small networks and layers like the model's on this device, and keeps what was learnt. Without a model "
        "it learns the device for any model, in 2 minutes. A profile that is already there is extended; a run that was "
        "stopped is continued.",
        "ampere profile                                 this device, for any model",
        "ampere profile --once                          the same, unless done before",
        "ampere profile lenet5                          for LeNet-5 of any widths",
        "ampere profile net.py:build --target 3% --seconds 120",
        "ampere profile --space cnn --seconds 300 --out cnns.json",
        "ampere profile cnn5 --device simulated:xavier  a simulated device",
        "ampere profile cnn5 --like pixel-7,pixel-8 --seconds 5    from others",
        "ampere profile cnn5 --method sequential --own-end   as the paper does",
        "ampere profile cnn5 --meter log:deferred --out c.json    then: ampere attach",
    )
    arguments.add_model(parser, optional=True)
    parser.add_argument("--space", choices=SPACES, help="instead of a model: all networks of this type")
    parser.add_argument(
        "--seconds",
        metavar="S",
        type=option_values.seconds,
        help="time to profile (default 15, without a model 120; a runtime that compiles: 120; a slow counter: more)",
    )
    parser.add_argument(
        "--own-end",
        action="store_true",
        help="with --method sequential: profile until the paper's own rule ends it, however long that takes",
    )
    parser.add_argument(
        "--iterations-per-measurement",
        metavar="N",
        type=option_values.count,
        help="train so many iterations for each measurement, as the paper's 500 "
        "(default: as few as are needed; with --method sequential or networks)",
    )
    parser.add_argument(
        "--target",
        metavar="SHARE",
        type=option_values.share,
        default=0.0,
        help="stop at this expected error, as 3%% or 0.03 (default: use all of the time)",
    )
    parser.add_argument("--once", action="store_true", help="do nothing where such a profile is there already")
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="the profile's file (default: this device's own, in AMPERE_HOME or the user's data folder)",
    )
    parser.add_argument(
        "--like",
        metavar="A,B",
        type=lambda text: [name.strip() for name in text.split(",") if name.strip()],
        default=[],
        help="start from profiles of similar devices: files, devices, or names in the catalogue",
    )
    arguments.add_device(parser)
    arguments.add_other_device(parser)
    arguments.add_method(parser)
    arguments.add_seed(parser)
    arguments.add_setup(parser)
    arguments.add_meter_choice(parser)
    arguments.add_meter(parser)
    arguments.add_output(parser)


def run(options: Namespace) -> None:
    from ampere.api import profile

    if options.own_end and options.seconds is not None:
        raise UsageError("--own-end profiles however long it takes: leave out --seconds, or --own-end")
    if options.model and options.space:
        raise UsageError("a model and --space are both named: leave out one of them")
    named = options.model or options.space
    if not named and (options.input or options.batch or options.arg):
        raise UsageError("--input, --batch and --arg belong to a model: name it, or leave them out")
    model = arguments.trainable_model(named, options) if named else None
    with arguments.open_device(options) as device, Display(options.quiet) as display:
        result = profile(
            model,
            seconds=options.seconds,
            own_end=options.own_end,
            iterations_per_measurement=options.iterations_per_measurement,
            target=options.target,
            once=options.once,
            out=options.out,
            like=options.like,
            device=device,
            method=options.method,
            timing=options.timing,
            watts_per_core=options.watts_per_core,
            allow_other_device=options.allow_other_device,
            seed=options.seed,
            progress=display.progress,
            notice=display.notice,
            **arguments.given_setup(options),
        )
    if options.json:
        print_json(result.to_json())
    else:
        show(result, options)


def show(result: ProfilingResult, options: Namespace) -> None:
    known = units.counted(len(result.profile.observations), "measurement")
    if result.expected_error is not None:
        known = f"expected error {units.percent(result.expected_error)}"
    headline(f"{known} after {units.seconds(result.seconds)}" if result.seconds else f"{known}, from before")
    print_facts(_facts(result, options))


def _facts(result: ProfilingResult, options: Namespace) -> Iterator[tuple[str, str]]:
    from ampere.cli.wording import meter_line, setup_line, speed_varied
    from ampere.estimation.normalization import reference_of, speed_spread
    from ampere.storage.profile import ENDS

    profile = result.profile
    yield "setup", setup_line(profile.setup)
    yield "profile", str(result.path)
    if profile.others:
        yield "threads", f"the file holds {', '.join(map(str, profile.threads))}; each learns from the others"
    simulated = "simulated " if profile.meter.simulated else ""
    most_first = sorted(result.measurements.items(), key=lambda item: -item[1])
    measured = ", ".join(units.counted(n, *PURPOSES.get(purpose, (purpose, purpose))) for purpose, n in most_first)
    yield "measured", f"{measured}; in all {simulated}{units.seconds(profile.profiling_seconds)}"
    if profile.ended_by:
        kinds = ", ".join(f"{n} by {ENDS[end]}" for end, n in profile.ended.items() if n)
        yield "ended", f"by {profile.ended_by} (of {units.counted(sum(profile.ended.values()), 'kind')} {kinds})"
    if (spread := speed_spread(profile.observations, reference_of(profile))) is not None:
        yield "varied", speed_varied(spread)
    if (spent := profile.profiling_joules) is not None:
        yield "spent", f"{simulated}{units.joules(spent)} on what was measured"
    yield "for", ", ".join(profile.spaces)
    if profile.sources:
        yield "like", _likeness(result)
    if compiled := result.compile_seconds:
        yield "compiling", f"{units.seconds(compiled)} of that; it is in no figure of training"
    if result.seconds:
        thinking = units.percent(result.thinking_seconds / result.seconds)
        yield "fitting", f"{thinking} of the time went into choosing and fitting"
    if result.resumed:
        yield "resumed", "a run that was stopped; its measurements are used"
    for refusal in result.refused[:REFUSALS_SHOWN]:
        yield "refused", refusal
    if len(result.refused) > REFUSALS_SHOWN:
        yield "refused", f"{len(result.refused) - REFUSALS_SHOWN} more"
    yield "joules", meter_line(profile.meter)
    yield "next", shlex.join(_next(result, options))


def _likeness(result: ProfilingResult) -> str:
    """How alike the devices turned out to be that the profile starts from."""
    from ampere.estimation.estimator import Estimator
    from ampere.estimation.transfer import Transferred

    model, sources = Estimator(result.profile).of_joules[0], result.profile.sources
    if not isinstance(model, Transferred):
        return "none is needed: the device has enough measurements of its own"
    names = [source.device_name for source in sources]
    alike = [f"{name} {units.percent(p)}" for name, p in zip(names, model.likeness, strict=False)]
    return f"{', '.join(alike)}; its own measurements {units.percent(1 - sum(model.likeness[: len(names)]))}"


def _next(result: ProfilingResult, options: Namespace) -> list[str]:
    """The command that uses the profile."""
    from ampere.devices.external_meters import DEFERRED
    from ampere.estimation.fitting import BY_LAYER

    model = arguments.model_words(options.model or "MODEL", options)
    if result.profile.meter.name == DEFERRED:
        return ["ampere", "attach", "FILE", "--to", str(result.path), "--time", "COLUMN", "--power", "COLUMN"]
    if result.profile.method not in BY_LAYER:
        return ["ampere", "validate", *model, "--methods", "all"]
    place = ["--profile", str(result.path)] if options.out else []
    device = ["--device", options.device] if options.device != "local" else []
    device += ["--on", options.on] if options.on else []
    setup = [word for name, value in arguments.given_setup(options).items() for word in (f"--{name}", str(value))]
    return ["ampere", "estimate", *model, *place, *device, *setup]
