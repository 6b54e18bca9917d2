"""Checks of the yardstick: the worker's own reference step, which never changes."""

from __future__ import annotations

from typing import Any

from ampere.core.measurement import seconds_per_iteration
from ampere.devices.conformance.candidate import Candidate
from ampere.devices.conformance.outcome import Broken, Check

from .blocks import block

SHORTEST, LONGEST = 1e-4, 0.5  # seconds a step
APART = 4.0  # a neighbour on the machine may slow one of two measurements down


def alone(candidate: Candidate) -> dict[str, Any]:
    """The cost of the yardstick, timed alone."""
    return candidate.result("yardstick", seconds=0.3, threads=1)


def figures(candidate: Candidate) -> None:
    found = alone(candidate)
    if not SHORTEST < found["busy_seconds"] < LONGEST:
        raise Broken(f"a step takes {found['busy_seconds']:g} s, but a yardstick should take a few milliseconds")
    if found["steps"] < 3:
        raise Broken("it was timed in less than three steps")


def steady(candidate: Candidate) -> None:
    first, again = alone(candidate), alone(candidate)
    paired = seconds_per_iteration(block(candidate, iterations=20)[0].yardstick)
    costs = (first["busy_seconds"], again["busy_seconds"], paired)
    if max(costs) > APART * min(costs):
        raise Broken(
            "its step takes different times alone, repeated, and in a block: " + ", ".join(f"{c:.2g} s" for c in costs)
        )


def refusals(candidate: Candidate) -> None:
    candidate.refused("yardstick", "bad_request", seconds=-1)
    candidate.refused("yardstick", "bad_request", seconds=0.1, threads=0)


CHECKS = (
    Check("yardstick", "times its yardstick alone", figures),
    Check("steady", "has the same yardstick alone, repeated, and in a block", steady),
    Check("yardstick-refusals", "refuses a yardstick without time or threads", refusals),
)
