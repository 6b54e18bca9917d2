"""What a worker's answers mean: errors, versions, physical limits, and what another project's worker can build."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ampere.core import Measurement
from ampere.core.errors import DeviceError, MeterError, RuntimeMissingError
from ampere.core.measurement import Window
from ampere.core.protocol import PROTOCOLS
from ampere.core.setup import DTYPES, OPTIMIZERS
from ampere.runtimes import Description
from ampere.runtimes.table import EVERY_KIND

from .device import VariantDied, VariantFailed


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
    if hello.get("protocol") not in PROTOCOLS:
        ours = " and ".join(map(str, PROTOCOLS))
        raise DeviceError(
            f"the worker speaks protocol {hello.get('protocol')!r}, this program {ours}: update the older of the two"
        )


def read_answer(answer: Mapping[str, Any]) -> tuple[dict[str, Any] | None, str, str]:
    """The result of an answer; or None, with the type and message of its error."""
    result, error = answer.get("result"), answer.get("error")
    if isinstance(result, dict):
        return result, "", ""
    if isinstance(error, dict):
        return None, str(error.get("type")), str(error.get("message"))
    return None, "", "the answer has neither a result nor an error; check the worker with `ampere conformance`"


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
    if kind == "meter_failed":
        return MeterError(message)
    if kind == "out_of_memory":
        return VariantDied(f"out of memory ({message}); use fewer channels or a smaller batch", out_of_memory=True)
    if kind == "variant_failed":
        return VariantFailed(f"a variant cannot be trained: {message}")
    if kind == "protocol":
        return DeviceError(f"{message}: update the older of worker and program")
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
    if not math.isfinite(found.compile_seconds) or found.compile_seconds < 0:
        return f"compile_seconds is {found.compile_seconds:g}"
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


def capabilities_in(hello: Mapping[str, Any]) -> Description | None:
    """What another project's worker says it can build; None for Ampere's own, whose runtimes are in our table."""
    if "worker" not in hello:
        return None
    usual = Description("", (), f"{hello['worker']} trains with {', '.join(hello['runtimes'])} only")
    return usual._replace(
        kinds=frozenset(hello.get("kinds", EVERY_KIND)),
        dtypes=tuple(hello.get("dtypes", DTYPES)),
        optimizers=tuple(hello.get("optimizers", OPTIMIZERS)),
        factories=bool(hello.get("factories", False)),
        stages=True,
    )
