"""`ampere attach`: the log of a meter that was exported after profiling."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from ampere.cli import options as shared
from ampere.cli.console import print_json
from ampere.cli.progress import reporting

COLUMNS = {
    "time": "s ms us ns iso",
    "power": "W mW uW",
    "current": "A mA uA",
    "voltage": "V mV uV; or a fixed one, as 5V",
}

EXAMPLES = "--time COLUMN --power COLUMN:mW, or --time COLUMN --current COLUMN:mA --voltage 5V"


def add_arguments(parser: ArgumentParser) -> None:
    shared.describe(
        parser,
        "Gives a profile that was made with --meter log:later the joules of a meter that recorded meanwhile. The load "
        "pattern that the device gave is looked for in the exported file, so that no clock needs to be set.",
        "ampere profile cnn5 --meter log:later --out cnn5.json     between pressing record and stop",
        "ampere attach bench.csv --to cnn5.json --time Timestamp --power Power:mW",
        'ampere attach ppk2.csv --to cnn5.json --time "Timestamp(ms):ms" --current "Current(uA):uA" --voltage 5V',
    )
    parser.add_argument("log", metavar="FILE", help="the exported recording: rows of text, one a sample")
    parser.add_argument("--to", metavar="PROFILE", required=True, help="the profile that was made meanwhile")
    for name, units in COLUMNS.items():
        parser.add_argument(
            f"--{name}", metavar="COLUMN[:UNIT]", help=f"its column, by name or by number from 1 ({units})"
        )
    parser.add_argument("--again", action="store_true", help="in the place of a log that was attached before")
    shared.add_output(parser)


def run(options: Namespace) -> None:
    from ampere.cli.views.attached import show, to_json
    from ampere.devices.external_meters.log import LogSpec
    from ampere.profiling.attaching import attach

    asked = {name: getattr(options, name) for name in COLUMNS if getattr(options, name)}
    with reporting(f"looking for the load in {options.log}", options.quiet):
        attached = attach(LogSpec.of(options.log, asked, EXAMPLES), Path(options.to), options.again)
    if options.json:
        print_json(to_json(attached, options.to))
    else:
        show(attached, options.to)
