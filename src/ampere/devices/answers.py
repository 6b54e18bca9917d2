"""What a worker's answers mean: errors, versions, physical limits, and what a worker of another make can build."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ampere.core.errors import DeviceError, MeterError, RuntimeMissingError
from ampere.core.protocol import PROTOCOLS
from ampere.core.setup import DTYPES, OPTIMIZERS
from ampere.runtimes import Description
from ampere.runtimes.table import EVERY_KIND

from .device import Block, VariantDied, VariantFailed

# What a host says first, and what a worker's answers mean: versions that do not fit and errors, each in one line.


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


# What no device can do: a block whose figures are outside physical limits is not kept, whoever answers it.

MOST_WATTS = 20e3  # of a machine with eight large accelerators
SLACK_SECONDS = 0.1  # two clocks
MEDIANS = 2.0  # figures are medians of windows: of half of them at least as much is true
DISAGREEING = 5.0  # a ratio is the median of pairs, and not that of two medians


def impossible(block: Block, cores: int, waited_seconds: float) -> str | None:
    """Why this cannot have happened on so many cores while the host waited so long; None where it can."""
    wrong = [name for name, value in _figures(block).items() if not math.isfinite(value) or value < 0]
    if wrong:
        return f"{wrong[0]} is {_figures(block)[wrong[0]]:g}"
    if not block.seconds > 0 or block.iterations < 1:
        return f"{block.iterations} iterations of {block.seconds:g} s each"
    if block.cpu_seconds > MEDIANS * cores * block.seconds + SLACK_SECONDS / block.iterations:
        return f"{block.cpu_seconds:g} CPU seconds in {block.seconds:g} s on {cores} cores"
    # Without joules the host reads the meter itself, or only time was asked for.
    if block.joules is not None and not 0 < block.joules <= MOST_WATTS * block.seconds and block.cpu_seconds:
        return f"{block.joules:g} J in {block.seconds:g} s"
    if block.elapsed > 1.1 * waited_seconds + SLACK_SECONDS:
        return f"{block.elapsed:g} s of work while the host waited {waited_seconds:g} s"
    if block.iterations * block.seconds > MEDIANS * (waited_seconds + SLACK_SECONDS):
        return f"{block.iterations} iterations of {block.seconds:g} s while the host waited {waited_seconds:g} s"
    return _disagreement(block)


def _disagreement(block: Block) -> str | None:
    if block.ratio is None or not block.yardstick_seconds or not block.cpu_seconds:
        return None
    off = block.ratio * block.yardstick_seconds / block.cpu_seconds
    if 1 / DISAGREEING <= off <= DISAGREEING:
        return None
    return f"a ratio of {block.ratio:g} where the seconds say {block.cpu_seconds / block.yardstick_seconds:g}"


def _figures(block: Block) -> dict[str, float]:
    named = {field.name: getattr(block, field.name) for field in fields(block)}
    return {name: value for name, value in named.items() if isinstance(value, (int, float))}


# What a worker that is not ours says that it can build.


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
