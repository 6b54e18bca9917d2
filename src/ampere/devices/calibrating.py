"""Watts at rest and under load, read from this machine's battery.

rest | load | rest | load      windows of equal length; under load each core multiplies matrices, in its own process
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import mean

from ampere.core.errors import MeterError, UsageError, WorkerError
from ampere.core.processes import end_group, own_group
from ampere.core.units import parse_power
from ampere.meters import Meter
from ampere.meters.battery import find
from ampere.meters.selection import sysfs

from .core_watts import CoreWatts, calibrated

PAIRS = 2
SETTLING_SHARE = 0.2  # of a window, in which clocks and fans settle and nothing is read
SETTLING_AT_MOST = 5.0
LOAD = "import numpy\na = numpy.random.rand(256, 256)\nwhile True:\n    a = (a @ a) / 256"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@contextmanager
def busy_cores(cores: int) -> Iterator[None]:
    """Keeps so many cores busy, each with a process that multiplies matrices on one thread."""
    environment = {**os.environ, **ONE_THREAD}
    workers = [subprocess.Popen([sys.executable, "-c", LOAD], env=environment, **own_group()) for _ in range(cores)]
    try:
        yield
    finally:
        for worker in workers:
            end_group(worker)


def from_battery(seconds: float, cores: int, on_window: Callable[[str], None] = lambda what: None) -> CoreWatts:
    """Reads the battery for so many seconds in all; refused while the device is plugged in."""
    try:
        meter = find(sysfs())
        if meter is None:
            raise MeterError(
                "this machine has no battery: read a plug meter at rest and during `ampere calibrate --load 60`, and "
                "give both with --idle 12W --busy 31W"
            )
        window = max(seconds / (2 * PAIRS), 3 * meter.update_seconds)
        rests, loads = list[float](), list[float]()
        for number in range(PAIRS):
            on_window(f"at rest, {number + 1} of {PAIRS}")
            rests.append(_watts(meter, window))
            on_window(f"{cores} busy cores, {number + 1} of {PAIRS}")
            with busy_cores(cores):
                loads.append(_watts(meter, window))
    except WorkerError as problem:
        raise MeterError(str(problem)) from None
    apart = max(max(values) - min(values) for values in (rests, loads))
    rise = mean(loads) - mean(rests)
    uncertainty = max(apart, 0.02 * abs(rise))  # gauges of batteries are about so exact
    return calibrated(mean(rests), mean(loads), cores, uncertainty, f"by the battery over {2 * PAIRS * window:.0f} s")


def _watts(meter: Meter, seconds: float) -> float:
    time.sleep(min(SETTLING_AT_MOST, SETTLING_SHARE * seconds))
    meter.start()
    began = time.monotonic()
    time.sleep(seconds)
    joules = meter.stop()
    return joules / (time.monotonic() - began)


def from_readings(idle: str, busy: str, cores: int) -> CoreWatts:
    """Two readings of a plug meter, as written: each is exact to half of its last digit."""
    uncertainty = _half_digit(idle) + _half_digit(busy)
    watts = parse_power(idle), parse_power(busy)
    if watts[1] <= watts[0]:
        raise UsageError(
            f"--busy {busy} is not more than --idle {idle}: read both again, --busy with all cores at work"
        )
    return calibrated(*watts, cores, uncertainty, "by the readings that were given")


def _half_digit(text: str) -> float:
    number = "".join(character for character in text if character in "0123456789.")
    scale = parse_power(text) / float(number) if float(number or 0) else 1.0
    return 0.5 * scale * 10.0 ** -len(number.partition(".")[2])
