"""Checking a meter: it must advance, and it must read more under a load than at rest.

load | rest | load | rest | load | rest      windows of a busy core and of a sleeping process, then its steps
"""

import hashlib
import time
from statistics import median
from typing import Any, Dict, List, Optional, Tuple

from ampere.core.errors import WorkerError

from .meter import Meter

PAIRS = 3
LEAST_WINDOW_SECONDS = 0.2
UPDATES_IN_WINDOW = 5
WATCHED_UPDATES = 20
WATCH_SECONDS_AT_LEAST, WATCH_SECONDS_AT_MOST = 0.1, 5.0
LEAST_RISE = 1.02
LEAST_REST_SECONDS, REST_UPDATES = 0.1, 10
HASHED = bytes(200000)


def check(meter: Meter) -> Dict[str, Any]:
    """Watts at rest and under load, noise, resolution and update rate; `problem` says why it is not usable, or None."""
    try:
        loads, rests = _watts(meter)
        resolution, update_seconds = _steps(meter)
    except WorkerError as problem:
        return {"problem": str(problem)}
    rest, load = median(rests), median(loads)
    noise = max(max(values) - min(values) for values in (loads, rests)) / 2
    return {
        "problem": _problem(rest, load, noise),
        "watts_idle": rest,
        "watts_load": load,
        "noise_watts": noise,
        "resolution": resolution,
        "resolution_unit": meter.reading_unit,
        "update_seconds": update_seconds,
    }


def advances(meter: Meter) -> bool:
    """Whether the meter reads any joules in a short busy moment."""
    meter.start()
    busy(max(0.02, min(0.25, UPDATES_IN_WINDOW * meter.update_seconds)))
    return meter.stop() > 0


def at_rest(meter: Meter) -> Tuple[float, Tuple[float, float]]:
    """Watts while nothing is trained, and the span in which they were read."""
    seconds = max(LEAST_REST_SECONDS, REST_UPDATES * meter.update_seconds)
    began = time.perf_counter()
    meter.start()
    time.sleep(seconds)
    joules, ended = meter.stop(), time.perf_counter()
    return joules / (ended - began), (began, ended)


def busy(seconds: float) -> None:
    """Keep a core busy. Hashing releases the GIL, so that a thread that samples power can run."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        hashlib.sha256(HASHED).digest()


def _watts(meter: Meter) -> Tuple[List[float], List[float]]:
    seconds = max(LEAST_WINDOW_SECONDS, UPDATES_IN_WINDOW * meter.update_seconds)
    loads: List[float] = []
    rests: List[float] = []
    for _ in range(PAIRS):
        for act, found in ((busy, loads), (time.sleep, rests)):
            meter.start()
            began = time.monotonic()
            act(seconds)
            found.append(meter.stop() / (time.monotonic() - began))
    return loads, rests


def _steps(meter: Meter) -> Tuple[Optional[float], Optional[float]]:
    """The smallest step that a reading made, and the seconds between steps, under load; None where it made none."""
    wanted = WATCHED_UPDATES * meter.update_seconds
    seconds = max(WATCH_SECONDS_AT_LEAST, min(WATCH_SECONDS_AT_MOST, wanted))
    began, last, times, steps = time.monotonic(), meter.reading(), [], []
    while time.monotonic() < began + seconds:
        reading = meter.reading()
        if reading != last:
            times.append(time.monotonic())
            steps.append(abs(reading - last))
            last = reading
    if len(times) < 2:
        return None, None
    return min(steps), (times[-1] - times[0]) / (len(times) - 1)


def _problem(rest: float, load: float, noise: float) -> Optional[str]:
    if load <= 0:
        return "it does not advance under load, so it cannot be used as a meter"
    if load <= LEAST_RISE * rest or load - rest <= noise:
        return (
            f"it does not rise under load ({rest:.3g} W at rest, {load:.3g} W under load, noise {noise:.2g} W): "
            "close other programs and check again, or use another meter"
        )
    return None
