"""`ampere attach`: the log of a meter that was exported after profiling."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampere.cli import arguments
from ampere.cli.console import headline, notice, print_facts, print_json
from ampere.core import units

if TYPE_CHECKING:
    from ampere.profiling.attaching import Attached

COLUMNS = {
    "time": "s ms us ns iso",
    "power": "W mW uW",
    "current": "A mA uA",
    "voltage": "V mV uV; or a fixed one, as 5V",
}
EXAMPLES = "--time COLUMN --power COLUMN:mW, or --time COLUMN --current COLUMN:mA --voltage 5V"


def add_arguments(parser: ArgumentParser) -> None:
    arguments.describe(
        parser,
        "Gives a profile that was made with --meter log:deferred the joules of a meter that recorded meanwhile. The "
        "load pattern that the device gave is found in the exported file, so that no clock needs to be set.",
        "ampere profile cnn5 --meter log:deferred --out c.json  while the meter records",
        "ampere attach bench.csv --to c.json --time Timestamp --power Power:mW",
        "ampere attach ppk2.csv --to c.json --time 1:ms --current 2:uA --voltage 5V",
    )
    parser.add_argument("log", metavar="FILE", help="the exported recording: rows of text, one a sample")
    parser.add_argument("--to", metavar="PROFILE", required=True, help="the profile that was made meanwhile")
    for name, units_of_it in COLUMNS.items():
        parser.add_argument(
            f"--{name}", metavar="COLUMN[:UNIT]", help=f"its column, by name or by number from 1 ({units_of_it})"
        )
    parser.add_argument("--again", action="store_true", help="replace a log that was attached before")
    arguments.add_output(parser)


def run(options: Namespace) -> None:
    from ampere.devices.external_meters.log import LogSpec
    from ampere.profiling.attaching import attach

    columns = {name: getattr(options, name) for name in COLUMNS if getattr(options, name)}
    notice(f"looking for the load pattern in {options.log} ...", options.quiet)
    attached = attach(LogSpec.of(options.log, columns, EXAMPLES), Path(options.to), options.again)
    if options.json:
        print_json(to_json(attached, options.to))
    else:
        headline(f"{attached.covered} of {attached.blocks} blocks have measured joules")
        print_facts(_facts(attached, options.to))


def to_json(attached: Attached, path: str) -> dict[str, Any]:
    profile = attached.profile
    return {
        "path": path,
        "blocks": attached.blocks,
        "covered": attached.covered,
        "rows": attached.rows,
        "alignment": asdict(attached.alignment),
        "meter": profile.meter.to_json(),
        "yardstick_joules": profile.yardstick_joules,
        "watts_idle": profile.watts_idle,
    }


def _facts(attached: Attached, path: str) -> Iterator[tuple[str, str]]:
    from ampere.cli.wording import meter_line

    profile, clocks = attached.profile, attached.alignment
    yield "profile", path
    seen = f"{clocks.found} of {clocks.given} load patterns found in {attached.rows:,} rows"
    yield "log", f"{seen}, correlation {clocks.likeness:.2f}"
    if clocks.found > 1:
        ahead = 1e6 * (clocks.rate - 1)
        faster = "fast" if ahead >= 0 else "slow"
        within = f"patterns match within {1e3 * clocks.within_seconds:.1f} ms"
        yield "clocks", f"the meter's runs {abs(ahead):.0f} ppm {faster}; {within}"
    else:
        yield "clocks", "compared at one pattern only: their relative rate is not known"
    if profile.watts_idle is not None:
        yield "at rest", f"{profile.watts_idle:.3g} W"
    if attached.covered < attached.blocks:
        yield "not covered", "blocks without rows in the log: estimated from the power of similar networks"
    yield "joules", meter_line(profile.meter)
    yield "yardstick", f"{units.joules(profile.yardstick_joules or 0.0)} a step"
    yield "next", shlex.join(["ampere", "estimate", "MODEL", "--profile", path])
