"""What a worker's answers mean: errors, versions, physical limits, and what another project's worker can build."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ampere.core import Measurement
from ampere.core.errors import ACCELERATOR, AcceleratorError, DeviceError, MeterError, RuntimeMissingError
from ampere.core.escaping import printable
from ampere.core.measurement import Window
from ampere.core.protocol import PROTOCOLS, TOKEN_VARIABLE, older_side
from ampere.core.setup import OPTIMIZERS
from ampere.runtimes import Description
from ampere.runtimes.table import EVERY_KIND
from ampere.storage.checks import check_measurement

from .answer_fields import ERROR
from .device import VariantDied, VariantFailed, Yardstick

LONGEST_MESSAGE = 500  # characters


def handshake(watts_per_core: float, beat_seconds: float) -> dict[str, Any]:
    """The first request to a worker."""
    return {
        "do": "hello",
        "protocols": list(PROTOCOLS),
        "beat_seconds": beat_seconds,
        "watts_per_core": watts_per_core,
    }


def check_version(hello: Mapping[str, Any]) -> None:
    """Raise where a worker's answer to `hello` names another protocol than ours."""
    theirs = hello.get("protocol")
    if type(theirs) is int and theirs not in PROTOCOLS:
        ours = " and ".join(map(str, PROTOCOLS))
        remedy = older_side([theirs], PROTOCOLS)
        raise DeviceError(f"the worker speaks protocol {theirs}, this program {ours}: {remedy}")


def read_answer(answer: Mapping[str, Any]) -> tuple[dict[str, Any] | None, str, str]:
    """The result of a parsed answer; or None, with the type and message of its error."""
    if "result" in answer:
        return answer["result"], "", ""
    kind, message = (printable(answer["error"][name][:LONGEST_MESSAGE]) for name in ERROR)
    if kind == "protocol" and "update" not in message:  # of a worker before version 3
        message = f"{message}: update the worker"
    return None, kind, message


def compiled_too_long(seconds: float) -> VariantDied:
    """The error for a variant that takes too long to compile."""
    return VariantDied(
        f"compiling a variant took longer than {seconds:g} s: give it longer with --compile-limit, leave it out, "
        "or train with --runtime torch"
    )


def as_error(kind: str, message: str) -> Exception:
    """The exception for an error that a worker reported."""
    if kind == "runtime_missing":
        return RuntimeMissingError(message)
    if kind == ACCELERATOR:
        return AcceleratorError(message)
    if kind == "meter_failed":
        return MeterError(message)
    if kind == "out_of_memory":
        return VariantDied(f"out of memory ({message}); use fewer channels or a smaller batch", out_of_memory=True)
    if kind == "variant_failed":
        return VariantFailed(f"a variant cannot be trained: {message}")
    if kind == "protocol":
        return DeviceError(message)
    if kind == "unauthorized":
        return DeviceError(f"the worker refuses this host ({message}): set {TOKEN_VARIABLE} to its token")
    if kind == "busy":
        return DeviceError(f"the worker is busy ({message}): wait until it is free")
    return DeviceError(f"the worker refused a request: {message}")


MOST_WATTS = 20e3  # of a machine with eight large accelerators
SLACK_SECONDS = 0.1  # between the clocks of host and worker


def impossible(found: Measurement, cores: int, waited_seconds: float) -> str | None:
    """Why a measurement is impossible on so many cores in the time that the host waited; None where it is possible."""
    if not found.target:
        return "a block without a window"
    for window in (*found.target, *found.yardstick):
        problem = _impossible_window(window, cores)
        if problem:
            return problem
    windows = sum(window.wall_seconds for window in (*found.target, *found.yardstick))
    elapsed = max(found.elapsed_seconds, windows)
    if not math.isfinite(elapsed) or elapsed > 1.1 * waited_seconds + SLACK_SECONDS:
        return f"{elapsed:g} s of work while the host waited {waited_seconds:g} s"
    if found.joules == 0 and found.busy_seconds:
        return f"0 J in {found.iterations} iterations of training"
    if found.yardstick and len(found.yardstick) != len(found.target) + 1:
        return f"{len(found.yardstick)} windows of the yardstick around {len(found.target)} of the target"
    try:
        check_measurement(found)  # else it could be stored, but not be read again
    except ValueError as problem:
        return str(problem)
    return None


def _impossible_window(window: Window, cores: int) -> str | None:
    iterations, wall, busy, joules, faults, _ = window
    if iterations < 1 or not 0 < wall < math.inf:
        return f"{iterations} iterations in {wall:g} s"
    if not 0 <= busy <= cores * wall * 1.5 + SLACK_SECONDS:
        return f"{busy:g} CPU seconds in {wall:g} s on {cores} cores"
    # Without joules the host reads the meter itself, or requested time only.
    if joules is not None and not 0 <= joules <= MOST_WATTS * wall:
        return f"{joules:g} J in {wall:g} s"
    return f"{faults} page faults" if faults < 0 else None


def impossible_yardstick(found: Yardstick, cores: int, waited_seconds: float) -> str | None:
    """Why a yardstick is impossible on so many cores in the time that the host waited; None where it is possible."""
    problem = _impossible_window(Window(1, found.wall_seconds, found.busy_seconds, found.joules), cores)
    if problem or found.joules == 0 or found.busy_seconds == 0:
        return problem or f"{found.joules} J and {found.busy_seconds:g} CPU seconds a step"
    seconds = found.steps * found.wall_seconds / 2  # at least: half of the steps take the median or more
    if seconds > 1.1 * waited_seconds + SLACK_SECONDS:
        return f"{found.steps} steps of {found.wall_seconds:g} s while the host waited {waited_seconds:g} s"
    if found.watts_idle is not None and found.watts_idle > MOST_WATTS:
        return f"{found.watts_idle:g} W at rest"
    return None


def capabilities_in(hello: Mapping[str, Any]) -> Description | None:
    """What another project's worker says it can build; None for Ampere's own, whose runtimes are in our table."""
    if "worker" not in hello:
        return None
    usual = Description("", (), f"{hello['worker']} trains with {', '.join(hello['runtimes'])} only")
    return usual._replace(
        kinds=frozenset(hello.get("kinds", EVERY_KIND)),
        dtypes=tuple(hello.get("dtypes", ("float32", "bfloat16"))),
        optimizers=tuple(hello.get("optimizers", OPTIMIZERS)),
        factories=bool(hello.get("factories", False)),
        stages=True,
    )
