"""What a host says first, and what a worker's answers mean: versions that do not fit and errors, each in one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import DeviceError, MeterError, RuntimeMissingError
from ..worker.language import PROTOCOLS
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
