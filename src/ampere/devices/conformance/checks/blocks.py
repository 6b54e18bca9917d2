"""Checks of blocks: they are really trained, and every figure agrees with the others and with the clock."""

from __future__ import annotations

import time
from typing import Any

from ampere.core import Measurement
from ampere.devices.answers import impossible
from ampere.devices.conformance.candidate import Candidate
from ampere.devices.conformance.outcome import Broken, Check

from .handshake import hello

SMALL, LARGE = (16, 8), (512, 512)
QUICK = {"iterations": 6, "warmup": 2}


def linear(channels_in: int, channels_out: int, rows: int = 32, **more: Any) -> dict[str, Any]:
    """A linear layer as a request describes it."""
    return {
        "kind": "linear",
        "config": {"lead": [rows], "bias": True},
        "channels": [channels_in, channels_out],
        "trailing": [],
        "name": "",
        "trainable": True,
        "input_grad": False,
        **more,
    }


def workload(*layers: dict[str, Any], rows: int = 32) -> dict[str, Any]:
    """A workload of described layers."""
    return {"layers": {"format": 1, "name": "", "batch": rows, "layers": list(layers), "notes": []}}


def perceptron(rows: int = 32) -> dict[str, Any]:
    """A workload of two linear layers with a ReLU between them."""
    relu = [["elementwise", 24.0 * rows, 24.0 * rows, True]]
    return workload(linear(16, 24, rows, trailing=relu), linear(24, 10, rows, input_grad=True), rows=rows)


TRAINED_ITERATIONS = 200
SHORT_SECONDS, SHORT_AT_MOST = 0.5, 10.0
MORE_EXPENSIVE = 1.5  # times the cost, at least, for 2000 times the work


def block(candidate: Candidate, **asked: Any) -> tuple[Measurement, float]:
    """The measurement of a block, and the seconds that the host waited for it."""
    began = time.monotonic()
    record = candidate.result("block", **{"workload": perceptron(), **QUICK, **asked})
    waited = time.monotonic() - began
    return Measurement.from_json({**record, "meter": {"name": "any", "measured": False}}), waited


def figures(candidate: Candidate) -> None:
    found, _ = block(candidate)
    if len(found.yardstick) != len(found.target) + 1:
        raise Broken("a block needs a window of the yardstick before, between and after those of the target")
    if found.iterations < QUICK["iterations"] and "short" not in found.flags:
        raise Broken(f"{found.iterations} iterations instead of {QUICK['iterations']}, and no flag that says so")


def limits(candidate: Candidate) -> None:
    cores = int(hello(candidate)["cores"])
    for asked in ({}, {"pairing": "window"}, {"workload": workload(linear(*LARGE))}):
        found, waited = block(candidate, **asked)
        why = impossible(found, cores, waited)
        if why:
            raise Broken(f"it reported impossible values: {why}")


def pairings(candidate: Candidate) -> None:
    windows, _ = block(candidate, pairing="window", iterations=20)
    if windows.ratio() is None:
        raise Broken("windows are not paired with the yardstick")
    plain, _ = block(candidate, pairing="plain", iterations=20)
    if plain.yardstick:
        raise Broken("a plain loop must have no windows of the yardstick")


def isolation(candidate: Candidate) -> None:
    block(candidate, isolation="fork")


def trains(candidate: Candidate) -> None:
    (first, last) = block(candidate, pairing="plain", iterations=TRAINED_ITERATIONS)[0].loss
    if first is None or last is None or not last < first:
        raise Broken(f"after {TRAINED_ITERATIONS} steps the loss went from {first} to {last}: nothing was trained")


def parameters(candidate: Candidate) -> None:
    found = block(candidate)[0].parameters
    if found != 16 * 24 + 24 + 24 * 10 + 10:
        raise Broken(f"a perceptron of 16, 24 and 10 has 658 parameters, not {found}")


def more_expensive(candidate: Candidate) -> None:
    small, large = (block(candidate, workload=workload(linear(*sizes)))[0] for sizes in (SMALL, LARGE))
    each = [sum(w.joules or 0.0 for w in found.target) / found.iterations for found in (small, large)]
    times = each[1] / (each[0] or 1.0)  # of all windows as they are: one that was slow changes a median's joules
    if large.busy_seconds < MORE_EXPENSIVE * small.busy_seconds or times < MORE_EXPENSIVE:
        raise Broken(f"2000 times the work costs {times:.2g} times the joules")


def limit(candidate: Candidate) -> None:
    found, waited = block(candidate, iterations=1_000_000, seconds_limit=SHORT_SECONDS)
    if "short" not in found.flags or waited > SHORT_AT_MOST:
        raise Broken(f"with a limit of {SHORT_SECONDS} s it took {waited:.1f} s, or did not flag the block as short")


CHECKS = (
    Check("figures", "answers a block with every figure", figures),
    Check("limits", "reports figures that are possible and consistent", limits),
    Check("pairings", "trains in windows, and in a plain loop", pairings),
    Check("isolation", "accepts a block that asks for a process of its own", isolation),
    Check("trains", "really trains: the loss falls", trains),
    Check("parameters", "counts parameters", parameters),
    Check("costs", "reports that more work costs more", more_expensive),
    Check("limit", "stops at the time limit, and flags the block", limit),
)
