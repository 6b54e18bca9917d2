"""`ampere calibrate`: watts of this device's cores, where its joules are modelled."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace

from ampere.cli import arguments, option_values
from ampere.cli.console import headline, notice, print_facts, print_json
from ampere.core.errors import UsageError

SECONDS = 120.0


def add_arguments(parser: ArgumentParser) -> None:
    arguments.describe(
        parser,
        "Learns how many watts a busy core of this device takes, for joules that are modelled and not measured. On a "
        "laptop that runs on its battery, the battery is read at rest and under load for two minutes. Elsewhere, read "
        "a plug meter at rest and during --load, and give both readings. What is learnt is kept with the device.",
        "ampere calibrate                            from the battery, in two minutes",
        "ampere calibrate --load 60                  all cores busy: read a plug meter",
        "ampere calibrate --idle 12W --busy 31W      what the plug meter showed",
    )
    parser.add_argument("--idle", metavar="POWER", help="what the plug meter shows at rest, as 12W")
    parser.add_argument("--busy", metavar="POWER", help="what it shows with the cores busy, as 31W")
    parser.add_argument(
        "--load", metavar="S", type=option_values.seconds, help="only keep the cores busy for S seconds"
    )
    parser.add_argument("--cores", metavar="N", type=option_values.count, help="cores that are busy (default all)")
    parser.add_argument(
        "--seconds",
        metavar="S",
        type=option_values.seconds,
        default=SECONDS,
        help="how long to read the battery (default 120)",
    )
    arguments.add_device(parser)
    arguments.add_output(parser)


def run(options: Namespace) -> None:
    from ampere.devices.calibrating import busy_cores, from_battery, from_readings
    from ampere.devices.core_watts import save_calibration

    given = options.idle is not None, options.busy is not None
    if any(given) and not all(given):
        raise UsageError("--idle and --busy belong together: give what the plug meter showed at rest and under load")
    with arguments.open_device(options) as device:
        if not device.is_real:
            raise UsageError(f"{options.device} has joules of its own: calibrate a real device")
        if not device.is_local and not all(given):
            raise UsageError(f"{options.device} cannot be read from here: give --idle 12W --busy 31W of a plug meter")
        identity = device.identity
    cores = options.cores or int(identity.get("cores", 1))
    if options.load:
        notice(f"{cores} cores are busy for {options.load:g} s: read the plug meter now", options.quiet)
        with busy_cores(cores):
            time.sleep(options.load)
        return
    if all(given):
        known = from_readings(options.idle, options.busy, cores)
    else:
        known = from_battery(options.seconds, cores, lambda what: notice(f"reading the battery: {what}", options.quiet))
    path = save_calibration(identity, known)
    if options.json:
        print_json({**vars(known), "cores": cores, "path": str(path)})
        return
    from ampere.cli.wording import within

    headline(f"{known.watts:.3g} W per busy core{within(known.meter())}")
    print_facts(
        [("origin", known.origin), ("kept in", str(path)), ("used", "by all estimates of this device from now on")]
    )
