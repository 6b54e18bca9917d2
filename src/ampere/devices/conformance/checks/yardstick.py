"""The yardstick: a step of the worker's own that never changes."""

from __future__ import annotations

from typing import Any

from ampere.devices.conformance.candidate import Candidate
from ampere.devices.conformance.outcome import Broken, Check

from .blocks import NUMBER, block
from .handshake import check_types

FIGURES: dict[str, tuple[type, ...]] = {
    "cpu_seconds": NUMBER,
    "seconds": NUMBER,
    "cpu_seconds_p10": NUMBER,
    "seconds_p10": NUMBER,
    "steps": (int,),
}
SHORTEST, LONGEST = 1e-4, 0.5  # seconds a step
APART = 4.0  # a neighbour on the machine may slow one of two measurements down


def alone(candidate: Candidate) -> dict[str, Any]:
    found = candidate.result("yardstick", seconds=0.3, threads=1)
    check_types(found, FIGURES, "the yardstick")
    return found


def figures(candidate: Candidate) -> None:
    found = alone(candidate)
    if not SHORTEST < found["cpu_seconds"] < LONGEST:
        raise Broken(f"a step takes {found['cpu_seconds']:g} s: a yardstick takes some milliseconds")
    if found["cpu_seconds_p10"] > found["cpu_seconds"] or found["steps"] < 3:
        raise Broken("a tenth of the steps is slower than half of them, or there are less than three")


def steady(candidate: Candidate) -> None:
    first, again, beside = alone(candidate), alone(candidate), block(candidate, iterations=20)[0].yardstick_seconds
    costs = (first["cpu_seconds"], again["cpu_seconds"], beside or 0.0)
    if max(costs) > APART * min(costs):
        raise Broken("alone, once more and beside a block its step takes " + ", ".join(f"{c:.2g} s" for c in costs))


def refusals(candidate: Candidate) -> None:
    candidate.refused("yardstick", "bad_request", seconds=-1)
    candidate.refused("yardstick", "bad_request", seconds=0.1, threads=0)


CHECKS = (
    Check("yardstick", "times its yardstick alone", figures),
    Check("steady", "has the same yardstick alone, again, and beside a block", steady),
    Check("yardstick-refusals", "refuses a yardstick of no time or no threads", refusals),
)
