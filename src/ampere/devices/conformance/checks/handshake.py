"""Checks of the handshake: what a worker says of itself."""

from __future__ import annotations

from typing import Any

from ampere.core.protocol import PROTOCOLS
from ampere.devices.conformance.candidate import Candidate
from ampere.devices.conformance.outcome import Broken, Check
from ampere.devices.device import SETTINGS

UNKNOWN_VERSION = 999_999
STATE = (*SETTINGS, "available_bytes")  # of the machine at this moment, not what it is


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
    if not said["cpu"] or not said["runtimes"]:
        raise Broken("it reports no processor name, or no runtime to train with")
    again = hello(candidate)
    changed = [name for name in {**said, **again} if name not in STATE and said.get(name) != again.get(name)]
    if changed:
        raise Broken(f"two requests got different descriptions of the worker: {', '.join(sorted(changed))}")


def meter(candidate: Candidate) -> None:
    said = hello(candidate)["meter"]
    if said["measured"] and said.get("simulated"):
        raise Broken("its meter is reported as measuring and as simulated")


CHECKS = (
    Check("version", "answers hello in a protocol version that Ampere speaks", version),
    Check("unknown-version", "refuses an unknown protocol version, in one line", unknown_version),
    Check("identity", "describes itself, the same each time", identity),
    Check("meter", "names its meter, what it covers, and whether it measures", meter),
)
