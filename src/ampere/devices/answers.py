"""What a worker's answers mean: errors, versions, physical limits, and what a worker of another make can build."""

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


def greeting(watts_per_core: float, beat_seconds: float) -> dict[str, Any]:
    return {
        "do": "hello",
        "protocols": list(PROTOCOLS),
        "beat_seconds": beat_seconds,
        "watts_per_core": watts_per_core,
    }


def check_version(said: Mapping[str, Any]) -> None:
    if said.get("protocol") not in PROTOCOLS:
        ours = " and ".join(map(str, PROTOCOLS))
        raise DeviceError(
            f"the worker speaks protocol {said.get('protocol')!r}, and this program {ours}: update the older of the two"
        )


def read_answer(answer: Mapping[str, Any]) -> tuple[dict[str, Any] | None, str, str]:
    """Its result; or None, and the type and the message of its error."""
    result, error = answer.get("result"), answer.get("error")
    if isinstance(result, dict):
        return result, "", ""
    if isinstance(error, dict):
        return None, str(error.get("type")), str(error.get("message"))
    return None, "", "neither a result nor an error came back; ampere conformance tells more"


def compiled_too_long(seconds: float) -> VariantDied:
    return VariantDied(
        f"compiling a variant took longer than {seconds:g} s: give it longer with --compile-limit, leave it out, "
        "or train with --runtime torch"
    )


def as_error(kind: str, message: str) -> Exception:
    if kind == "runtime_missing":
        return RuntimeMissingError(message)
    if kind == "meter_failed":
        return MeterError(message)
    if kind == "out_of_memory":
        return VariantDied(f"out of memory ({message}); smaller channels or batches fit", out_of_memory=True)
    if kind == "variant_failed":
        return VariantFailed(f"a variant cannot be trained: {message}")
    if kind == "protocol":
        return DeviceError(f"{message}: update the older of worker and program")
    if kind == "busy":
        return DeviceError(f"the worker has no time ({message}): wait until it is free")
    return DeviceError(f"the worker refused a request: {message}")


MOST_WATTS = 20e3  # of a machine with eight large accelerators
SLACK_SECONDS = 0.1  # two clocks


def impossible(found: Measurement, cores: int, waited_seconds: float) -> str | None:
    """Why this cannot have happened on so many cores while the host waited so long; None where it can."""
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
    # Without joules the host reads the meter itself, or only time was asked for.
    if joules is not None and not 0 <= joules <= MOST_WATTS * wall:
        return f"{joules:g} J in {wall:g} s"
    return f"{faults} page faults" if faults < 0 else None


def abilities_in(hello: Mapping[str, Any]) -> Description | None:
    """None where the worker is ours: its runtimes are in our own table. What is left out is said block by block."""
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
