"""`ampere fleet`: the same work on many devices, in parallel where that disturbs nobody."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ampere.cli import arguments, option_values
from ampere.cli.console import Display, headline, print_facts, print_json, print_table
from ampere.core import units
from ampere.core.errors import DeviceError

if TYPE_CHECKING:
    from ampere.api.fleets import FleetResult
    from ampere.fleet.running import Outcome

ACTIONS = ("profile", "estimate", "validate", "check", "report")
Cells = Callable[[str, Mapping[str, Any]], list[tuple[str, ...]]]


def add_arguments(parser: ArgumentParser) -> None:
    arguments.describe(
        parser,
        "Checks, profiles or estimates on all devices of a fleet file. Devices on different machines are measured at "
        "the same time, those of one machine one after the other. One that fails is named, and the others go on; what "
        "an earlier run has done is not done again.",
        "ampere fleet fleet.toml check",
        "ampere fleet fleet.toml profile lenet5 cnn5 --seconds 30",
        "ampere fleet fleet.toml estimate lenet5 cnn5 resnet --out all.parquet",
        "ampere fleet fleet.toml validate lenet5",
        "ampere fleet fleet.toml report cnn5 --out fleet.html",
        "ampere fleet fleet.toml profile cnn5 --scheduler tcp://lab:8786",
    )
    parser.add_argument("fleet", metavar="FLEET.toml", help="devices: name, address, labels, battery, memory ...")
    parser.add_argument("action", choices=ACTIONS, help="what to do with each device")
    parser.add_argument("models", metavar="MODEL", nargs="*", help=arguments.MODEL)
    arguments.add_input(parser)
    parser.add_argument("--seconds", metavar="S", type=option_values.seconds, help="time to profile each (default 15)")
    words = "seconds that one device may take (default 1h)"
    parser.add_argument("--time-limit", metavar="S", type=option_values.seconds, default=3600.0, help=words)
    words = "how often to try a device that fails (default 2)"
    parser.add_argument("--attempts", metavar="N", type=option_values.count, default=2, help=words)
    words = "only devices with this name or label; may be repeated"
    parser.add_argument("--label", metavar="NAME", action="append", default=[], help=words)
    words = "a running dask scheduler, whose workers front the devices (default: this process)"
    parser.add_argument("--scheduler", metavar="tcp://HOST:PORT", help=words)
    parser.add_argument("--again", action="store_true", help="also what an earlier run has done")
    parser.add_argument("--out", metavar="FILE", help="figures as .parquet or .csv; the page of a report")
    arguments.add_output(parser)


def run(options: Namespace) -> None:
    from ampere.api.fleets import fleet

    with Display(options.quiet) as display:
        progress = display.task(f"{options.action} {options.fleet}")

        def ended(outcome: Outcome, done: int, total: int) -> None:
            if outcome.problem:
                display.notice(f"{outcome.device}: {outcome.problem}")
            progress(done, total, f"{outcome.device}, {done} of {total}")

        found = fleet(
            options.fleet,
            options.action,
            *options.models,
            input=options.input,
            batch=options.batch,
            arguments=dict(options.arg),
            seconds=options.seconds,
            time_limit=options.time_limit,
            attempts=options.attempts,
            scheduler=options.scheduler,
            labels=options.label,
            again=options.again,
            out=options.out,
            on_outcome=ended,
        )
        for problem in found.problems if options.json else ():  # else with the results
            display.notice(problem)
    if options.json:
        print_json(found.to_json())
    else:
        show(found)
    if failed := [outcome.device for outcome in found.outcomes if outcome.result is None]:
        every = units.counted(len(found.outcomes), "device")
        raise DeviceError(f"{len(failed)} of {every} failed: {', '.join(failed)}")


def show(found: FleetResult) -> None:
    good = [outcome for outcome in found.outcomes if outcome.result is not None]
    headline(f"{found.action}: {len(good)} of {units.counted(len(found.outcomes), 'device')}")
    print()
    columns, cells = TABLES[found.action]
    rows = [row for outcome in good for row in cells(outcome.device, outcome.result or {})]
    if rows:
        print_table(columns, rows)
        print()
    failed = [(outcome.device, outcome.problem) for outcome in found.outcomes if outcome.result is None]
    earlier = [("earlier", f"{', '.join(found.earlier)}: done before; --again does it again")] if found.earlier else []
    unusable = [("left out", problem) for problem in found.problems]
    print_facts([*failed, *unusable, *earlier, *(("written", str(path)) for path in found.written)])


def _checked(name: str, result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    meter = f"{result['meter']}{'' if result['measured'] else ' (modelled)'}"
    profiled = "profiled" if result["profile"] else "no profile yet"
    return [(name, str(result["cpu"]), meter, ", ".join(result["runtimes"]), profiled)]


def _profiled(name: str, result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    error = result["expected_error"]
    cells = (str(result["measurements"]), units.seconds(result["profiling_seconds"]))
    return [(name, *cells, "" if error is None else units.percent(error), result["path"])]


def _estimated(name: str, result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [
        (
            name,
            row["model"],
            units.joules(row["joules"]),
            units.percent(1.645 * row["stddev"] / row["joules"]) if row["joules"] else "",
            units.seconds(row["seconds"]),
            row["joules_are"],
            "not profiled" if row["unprofiled"] else "extrapolated" if row["extrapolated"] else "",
        )
        for row in result["rows"]
    ]


def _validated(name: str, result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    figures = ("mape", "repeatability_mape", "coverage90")
    return [
        (name, row["model"], str(row["networks"]), *(units.percent(row[figure]) for figure in figures))
        for row in result["rows"]
    ]


TABLES: dict[str, tuple[list[str], Cells]] = {
    "check": (["device", "processor", "meter", "runtimes", ""], _checked),
    "profile": (["device", ">measurements", ">time", ">expected error", "file"], _profiled),
    "estimate": (["device", "model", ">an iteration", ">± 90 %", ">time", "joules are", ""], _estimated),
    "validate": (["device", "model", ">networks", ">error", ">measuring twice", ">covers"], _validated),
    "report": (["device", "profile"], lambda name, result: [(name, str(result["profile"]))]),
}
