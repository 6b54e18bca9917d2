"""`ampere estimate`: what training will cost."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ampere.cli import arguments, option_values
from ampere.cli.console import Display, bar, headline, print_facts, print_json, print_table, rows_that_fit
from ampere.core import units
from ampere.core.errors import UsageError
from ampere.core.setup import ALLOCATORS, TrainingSetup
from ampere.runtimes.table import OURS

if TYPE_CHECKING:
    from ampere.api import Options, ProfiledEstimate, RunPlan
    from ampere.devices import Device
    from ampere.estimation.estimate import Estimate
    from ampere.estimation.memory import MemoryEstimate
    from ampere.estimation.training_run import TrainingRun

OTHER_LINES = 18  # above and below the layers
BAR = 12  # characters
SEVERAL = 3.0  # from here on a figure is so many times another, not so many percent more
UNCERTAIN = 0.5  # an interval that is wider than this share of the figure is said in the headline


def add_arguments(parser: ArgumentParser) -> None:
    arguments.describe(
        parser,
        "How many joules training a model will cost on this device, layer by layer and with a 90 % interval. The "
        "first time, the device is profiled for some seconds. A model of your own is trained for a few seconds, once.",
        "ampere estimate lenet5                              one iteration, by layer",
        "ampere estimate net.py:build --input 10x3x32x32 --iterations 10000",
        "ampere estimate net.py:build --arg width=32 --batch 64",
        "ampere estimate resnet --epochs 30 --samples 50000 --battery 15Wh --idle 3W",
        "ampere estimate net.py:build --epochs 3 --data net.py:loader --price 0.30/kWh",
        "ampere estimate net.py:build --iterations 100000 --grid DE,FR --pue 1.2",
        "ampere estimate cnn5 --device simulated:phone-android",
        "ampere estimate net.py:build --memory 4GB --largest-batch",
        "ampere estimate net.json --profile phone.json --allow-other-device",
    )
    arguments.add_model(parser, ", or a file of `ampere trace`")
    arguments.add_run(parser, whole=True)
    arguments.add_allocator(parser, "system")
    parser.add_argument(
        "--current-speed",
        action="store_true",
        help="as fast as the device is at present (default: as it was when profiled)",
    )
    parser.add_argument(
        "--top",
        metavar="K",
        type=option_values.count_or_zero,
        help="show the K most expensive layers (default: as many as fit the screen; 0: all)",
    )
    parser.add_argument(
        "--touch",
        metavar="S",
        type=option_values.seconds_or_zero,
        help="seconds of training the model's own code, to compare with what its layers say "
        "(default 5, once, where the code runs here; 0: never)",
    )
    arguments.add_group_by(parser)
    group = parser.add_argument_group("memory")
    arguments.add_memory(group, "what training may take at its peak (default: what the device has free)")
    group.add_argument("--largest-batch", action="store_true", help="also find the largest batch that fits")
    arguments.add_device(parser)
    arguments.add_profile_choice(parser)
    arguments.add_other_device(parser)
    arguments.add_method(parser)
    arguments.add_setup(parser)
    arguments.add_meter(parser, "the profile's own")
    group = arguments.add_output(parser)
    group.add_argument(
        "--format", choices=("json", "csv", "markdown", "html"), help="write it to standard output in this format"
    )


def run(options: Namespace) -> None:
    if options.json and options.format not in (None, "json"):
        raise UsageError(f"--json and --format {options.format} are two formats: give one of them")
    with arguments.open_device(options) as device, Display(options.quiet) as display:
        device.describe_ahead()
        from ampere.api import at_current_speed, ensure_profile, whole_run
        from ampere.cli.last_estimates import explain_change

        plan = arguments.run_plan(options)
        limit = _memory_limit(device, options)
        asked = arguments.api_options(options, device, display)
        subject = arguments.subject(options.model, options)
        known = ensure_profile(subject, asked, touch=options.touch)
        if options.current_speed:
            known = at_current_speed(known, asked)
        elif not options.profile and not options.watts_per_core and (change := explain_change(known)):
            display.notice(change)
        total = whole_run(known, plan, subject, asked)
        memory = _memory(known, limit, options)
        spent = {"memory": memory and memory.to_json()}
        if options.format == "json" or options.json:
            print_json({**to_json(known, total), **spent, **_blocks(known.estimate, options.group_by)})
        elif options.format:
            from ampere.reporting.documents import FORMATS

            if options.format == "csv" and total is not None:
                display.notice("CSV has a row for each layer of an iteration; the run is in json, markdown and html")
            print(FORMATS[options.format]({**to_json(known, total), **spent}), end="")
        else:
            show(known, total, plan, memory, asked, options)


def _memory_limit(device: Device, options: Namespace) -> float | None:
    """Bytes that the user allows, or else that the device has free; None where nobody says."""
    # A profile that is named may be of another device: the free memory of this one says nothing then.
    limit: float | None = options.memory or (None if options.profile else device.described.available_bytes)
    if options.largest_batch and limit is None:
        raise UsageError(f"{options.device} does not say how much memory is free: give it with --memory, as 4GB")
    return limit


def _memory(known: ProfiledEstimate, limit: float | None, options: Namespace) -> MemoryEstimate | None:
    if not (options.memory or options.largest_batch or known.step_memory.has_code):
        return None  # importing PyTorch takes longer than all the rest
    found = known.step_memory.at(None) if options.memory or options.largest_batch else known.estimate.memory
    if found is None:
        return None
    batch = known.step_memory.largest_batch(limit) if limit and options.largest_batch else None
    return replace(found, limit_bytes=limit, largest_batch=batch)


def to_json(known: ProfiledEstimate, total: TrainingRun | None) -> dict[str, object]:
    profile = known.profile
    origin = {
        "path": str(known.path) if known.path else None,
        "measurements": len(profile.observations),
        "profiling_seconds": profile.profiling_seconds,
        "spaces": list(profile.spaces),
        "device": profile.device_name,
        "origin": profile.device.get("origin"),
    }
    unsupported = {"unsupported": list(known.unsupported)} if known.unsupported else {}
    return {**known.estimate.to_json(), **unsupported, "total": total and total.to_json(), "profile": origin}


def _blocks(estimate: Estimate, group_by: str) -> dict[str, object]:
    if group_by != "block":
        return {}
    from ampere.estimation.grouping import group_layers

    return {"blocks": [block.to_json() for block in group_layers(estimate.layers)]}


def show(
    known: ProfiledEstimate,
    total: TrainingRun | None,
    plan: RunPlan,
    memory: MemoryEstimate | None,
    asked: Options,
    options: Namespace,
) -> None:
    estimate = known.estimate
    headline(f"{estimate.network or 'network'}: {first_line(estimate)}")
    from ampere.cli.run_lines import run_lines
    from ampere.cli.wording import memory_lines

    spent = memory_lines(memory) if memory else ()
    of_run = run_lines(estimate, total, plan)
    print_facts([*_touch(estimate), *_setup(estimate), *spent, *of_run, *_uncertain(known, asked, options)])
    print()
    scale, unit = units.joules_unit(estimate.joules)
    by_block = options.group_by == "block"
    columns = ["block" if by_block else "layer", "kind", *([">count"] if by_block else [])]
    print_table([*columns, f">{unit}", ">±", ">share", "|"], _rows(estimate, by_block, options.top, scale))
    print()
    print_facts([*_notes(known, asked, options), *_origins(known, options.current_speed)])


def first_line(estimate: Estimate) -> str:
    low, high = estimate.interval
    scale, unit = units.joules_unit(estimate.joules)
    joules, stddev, least, most = (units.three(v / scale) for v in (estimate.joules, estimate.stddev, low, high))
    seconds = units.seconds(estimate.seconds)
    if is_uncertain(estimate):
        return f"{joules} {unit} per iteration, uncertain: 90 % interval {least} to {most} {unit}, {seconds}"
    return f"{joules} ± {stddev} {unit} per iteration (90 %: {least} to {most} {unit}), {seconds}"


def is_uncertain(estimate: Estimate) -> bool:
    low, high = estimate.interval
    return high - low > UNCERTAIN * estimate.joules


def _touch(estimate: Estimate) -> Iterator[tuple[str, str]]:
    """What the layers say, and what the model's own code showed."""
    if (touch := estimate.touch) is None:
        return
    yield "layers", f"{_with_stddev(touch.layers_joules, touch.layers_stddev)}, added up from the profile"
    apart = f"{units.percent(abs(touch.factor - 1))} {'more' if touch.factor > 1 else 'less'}"
    if touch.factor >= SEVERAL:
        apart = f"{units.three(touch.factor)} times as much"
    processes = f"{touch.processes} process{'es' if touch.processes > 1 else ''}"
    yield "own code", f"{_with_stddev(touch.code_joules, touch.code_stddev)}, {apart}: trained in {processes}"


def _with_stddev(joules: float, stddev: float) -> str:
    scale, unit = units.joules_unit(joules)
    return f"{units.three(joules / scale)} ± {units.three(stddev / scale)} {unit}"


def _setup(estimate: Estimate) -> Iterator[tuple[str, str]]:
    from ampere.cli.wording import setup_line

    yield "setup", setup_line(estimate.setup, estimate.batch)
    if estimate.device:
        yield "device", estimate.device


# The layers.


@dataclass(frozen=True)
class Row:
    name: str
    kind: str
    count: int
    joules: float
    stddev: float


def _rows(estimate: Estimate, by_block: bool, top: int | None, scale: float) -> Iterator[tuple[str, ...]]:
    shown = _folded(_all_rows(estimate, by_block), rows_that_fit(OTHER_LINES, 8, 20) if top is None else top)
    largest = max(row.joules for row in shown)
    for row in shown:
        stddev = units.significant(row.stddev / scale, 2) if row.stddev else ""
        count = [f"{row.count:,}" if row.count > 1 else ""] if by_block else []
        cost, share = units.significant(row.joules / scale), units.percent(row.joules / estimate.joules)
        yield row.name, row.kind, *count, cost, stddev, share, bar(row.joules / largest, BAR)


def _all_rows(estimate: Estimate, by_block: bool) -> list[Row]:
    """The layers or blocks in the order in which they run; the last row is what is in no layer."""
    if by_block:
        from ampere.estimation.grouping import blocks

        rows = [Row(b.name or "-", b.kind, b.count, b.joules, b.stddev) for b in blocks(estimate)]
    else:
        rows = _once(estimate)
    return [replace(row, name="(rest of step)", kind="") if row.kind == "step" else row for row in rows]


def _once(estimate: Estimate) -> list[Row]:
    """One row for each layer: one that runs several times in a step, as in a loop, says so behind its name."""
    rows: dict[tuple[str, str], Row] = {}
    for layer in estimate.layers:
        which = layer.name or "-", layer.kind
        before = rows.get(which, Row(*which, 0, 0.0, 0.0))
        rows[which] = Row(*which, before.count + 1, before.joules + layer.joules, before.stddev + layer.stddev)
    return [replace(row, name=f"{row.name} ({row.count} times)") if row.count > 1 else row for row in rows.values()]


def _folded(rows: list[Row], top: int) -> list[Row]:
    """The most expensive rows in the order in which they run, then all others as one, then the rest of the step."""
    *layers, rest = rows
    kept = set(sorted(range(len(layers)), key=lambda i: layers[i].joules, reverse=True)[: top or None])
    others = [row.joules for i, row in enumerate(layers) if i not in kept]
    folded = [Row(f"({len(others)} others)", "", 1, sum(others), 0.0)] if others else []
    return [*(layers[i] for i in sorted(kept)), *folded, rest]


# What is uncertain, and where the figures come from.


def _uncertain(known: ProfiledEstimate, asked: Options, options: Namespace) -> Iterator[tuple[str, str]]:
    """Directly below the figure, where its interval is too wide to rely on."""
    if is_uncertain(known.estimate) and not known.unsupported:
        ours = not known.profile.device.get("origin")
        does = "makes it tighter" if ours else "learns your own device, starting from this profile"
        advice = f"`{_profile_command(known, asked, options)}` {does}"
        yield "uncertain", f"the 90 % interval is wider than half the figure: {advice}"


def _notes(known: ProfiledEstimate, asked: Options, options: Namespace) -> Iterator[tuple[str, str]]:
    from ampere.api import CERTAIN_ENOUGH
    from ampere.cli.wording import some

    estimate = known.estimate
    if estimate.unprofiled:
        yield (
            "not profiled",
            f"{some(estimate.unprofiled)}: no layer of that kind was measured; estimated from its arithmetic alone",
        )
    if estimate.extrapolated:
        yield "extrapolated", f"{some(estimate.extrapolated)}: far larger or smaller than any layer that was measured"
    incomplete = estimate.unprofiled or estimate.extrapolated
    if known.unsupported:
        runtime = known.profile.setup.runtime
        yield "unsupported", f"{runtime} cannot train {some(known.unsupported)}: use another --runtime, such as torch"
    elif not is_uncertain(estimate) and (estimate.stddev > CERTAIN_ENOUGH * estimate.joules or incomplete):
        yield "for a tighter interval", _profile_command(known, asked, options)
    for note in known.network.notes:
        yield "note", note


def _profile_command(known: ProfiledEstimate, asked: Options, options: Namespace) -> str:
    """The command that measures more of this model, in the same setup, on the same device, for the same profile."""
    from ampere.api import profile_options

    setup = known.profile.setup
    model = ["MODEL"] if options.model.endswith(".json") else arguments.model_words(options.model, options)
    named = str(options.profile or "")
    if known.profile.device.get("origin"):  # of somebody else, in the catalogue
        more = ["--like", named.removeprefix("catalogue:")]
    else:
        more = ["--out", named] if named and not options.allow_other_device else []
    words = shlex.join([*more, "--seconds", str(_longer(setup))])
    return f"ampere profile {shlex.join(model)}{profile_options(setup, asked)} {words}"


def _longer(setup: TrainingSetup) -> int:
    """Seconds that are more than a profile takes by default."""
    return 240 if setup.runtime in OURS and OURS[setup.runtime].compiles else 60


def _origins(known: ProfiledEstimate, current_speed: bool) -> Iterator[tuple[str, str]]:
    from ampere.cli.wording import meter_line

    estimate, profile = known.estimate, known.profile
    yield "rest of step", "what a step costs outside its layers: the loss and the training loop itself"
    yield "joules", meter_line(estimate.meter)
    yield "condition", _condition(estimate, current_speed, len(profile.runs))
    yield "varies", _variation(estimate)
    yield "assumes", ALLOCATORS[estimate.allocator]
    yield "covers", str(estimate.to_json()["covers"])
    measured = f"{units.counted(len(profile.observations), 'measurement')} of {', '.join(profile.spaces)}"
    yield "profile", f"{known.path}: {measured}" if known.path else measured
    if origin := profile.device.get("origin"):
        yield "measured by", str(origin)


def _variation(estimate: Estimate) -> str:
    from ampere.cli.wording import speed_varied

    parts = {
        "the estimate by {}, which its interval shows": estimate.uncertainty["model"],
        "one training process from the next by {}": estimate.process_spread,
    }
    said = [what.format(units.percent(part)) for what, part in parts.items() if part is not None]
    if estimate.machine_spread is not None:
        said.append(speed_varied(estimate.machine_spread))
    return "; ".join(said)


def _condition(estimate: Estimate, current_speed: bool, runs: int) -> str:
    if not current_speed and not runs:
        return "the device as it was when profiled; --current-speed measures it at present"
    change = estimate.condition - 1
    how = f"{units.percent(abs(change))} {'more expensive' if change > 0 else 'cheaper'} than when it was profiled"
    source = (
        "" if current_speed else f", from {runs} recorded run{'s' if runs > 1 else ''}; --current-speed measures it"
    )
    return f"the device at present: a step is {how}{source}"
