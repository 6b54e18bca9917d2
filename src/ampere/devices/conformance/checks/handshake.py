"""Checks of the handshake: what a worker says of itself."""

from __future__ import annotations

from typing import Any

from ampere.core.protocol import PROTOCOLS
from ampere.devices.conformance.candidate import Candidate
from ampere.devices.conformance.outcome import Broken, Check

UNKNOWN_VERSION = 999_999
TYPES: dict[str, tuple[type, ...]] = {
    "protocol": (int,),
    "system": (str,),
    "machine": (str,),
    "cpu": (str,),
    "cores": (int,),
    "runtimes": (dict,),
    "meter": (dict,),
}
OPTIONAL: dict[str, tuple[type, ...]] = {
    "worker": (str,),
    "release": (str,),
    "machine_id": (str, type(None)),
    "power_source": (str, type(None)),
    "unusable_counters": (list,),
    "vector_width": (int,),
    "factories": (bool,),
    "beat_seconds": (int, float, type(None)),
}
METER: dict[str, tuple[type, ...]] = {"name": (str,), "measured": (bool,), "scope": (str,)}


def hello(candidate: Candidate) -> dict[str, Any]:
    """The worker's description of itself."""
    return candidate.result("hello", protocols=list(PROTOCOLS))


def version(candidate: Candidate) -> None:
    found = hello(candidate).get("protocol")
    if found not in PROTOCOLS:
        raise Broken(f"it speaks protocol {found!r}, and this program {', '.join(map(str, PROTOCOLS))}: update one")


def unknown_version(candidate: Candidate) -> None:
    candidate.refused("hello", "protocol", protocols=[UNKNOWN_VERSION])


def identity(candidate: Candidate) -> None:
    said = hello(candidate)
    check_types(said, TYPES, "hello")
    check_types(said, {name: kinds for name, kinds in OPTIONAL.items() if name in said}, "hello")
    if said["cores"] < 1 or not said["cpu"] or not said["runtimes"]:
        raise Broken("it reports no cores, no processor name, or no runtime to train with")
    if hello(candidate) != said:
        raise Broken("two requests got different descriptions of the worker")


def meter(candidate: Candidate) -> None:
    said = hello(candidate).get("meter")
    if not isinstance(said, dict):
        raise Broken("hello has no meter")
    check_types(said, METER, "the meter")
    if said["measured"] and said.get("simulated"):
        raise Broken("its meter is reported as measuring and as simulated")


def check_types(found: dict[str, Any], types: dict[str, tuple[type, ...]], where: str) -> None:
    """Raise Broken unless every field is there and has one of its types."""
    for name, kinds in types.items():
        if name not in found:
            raise Broken(f"{where} lacks {name}")
        wrong_bool = isinstance(found[name], bool) and bool not in kinds
        if not isinstance(found[name], kinds) or wrong_bool:
            raise Broken(f"{name} of {where} is {found[name]!r}")


CHECKS = (
    Check("version", "answers hello in a protocol version that Ampere speaks", version),
    Check("unknown-version", "refuses an unknown protocol version, in one line", unknown_version),
    Check("identity", "describes itself, the same each time", identity),
    Check("meter", "names its meter, what it covers, and whether it measures", meter),
)
