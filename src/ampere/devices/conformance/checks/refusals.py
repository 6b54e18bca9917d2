"""Checks that invalid requests are refused before anything is trained."""

from __future__ import annotations

from typing import Any

from ampere.devices.conformance.candidate import Candidate
from ampere.devices.conformance.outcome import Broken, Check

from .blocks import QUICK, linear, perceptron, workload

BAD_BLOCKS: tuple[dict[str, Any], ...] = (
    {"workload": None},
    {"workload": {}},
    {"iterations": 0},
    {"iterations": "ten"},
    {"warmup": 0},
    {"pairing": "hour"},
    {"isolation": "container"},
    {"stage": "sideways"},
    {"seconds_limit": -1},
    {"setup": {"optimizer": "magic"}},
    {"setup": {"dtype": "int3"}},
    {"setup": {"threads": 0}},
    {"setup": {"runtime": "abacus"}},
    {"setup": 3},
)


def unknown_action(candidate: Candidate) -> None:
    candidate.refused("dance", "bad_request")
    candidate.result("ping")


def bad_blocks(candidate: Candidate) -> None:
    for wrong in BAD_BLOCKS:
        asked = {"workload": perceptron(), **QUICK, **wrong}
        answer = candidate.ask("block", **asked)
        if answer.get("error", {}).get("type") != "bad_request":
            raise Broken(f"a block with {wrong} was not refused as a bad_request")
    candidate.result("ping")


def unknown_layer(candidate: Candidate) -> None:
    message = candidate.refused("block", "variant_failed", workload=workload(linear(4, 4, kind="warp")), **QUICK)
    if "warp" not in message:
        raise Broken(f"a layer of kind warp was refused without naming it: {message[:80]}")


def no_layers(candidate: Candidate) -> None:
    candidate.refused("block", "variant_failed", "bad_request", workload=workload(), **QUICK)


def unknown_factory(candidate: Candidate) -> None:
    asked = {"factory": "no.such.module:build", "arguments": {}}
    candidate.refused("block", "variant_failed", "bad_request", workload=asked, **QUICK)
    candidate.result("ping")


CHECKS = (
    Check("unknown-action", "refuses an unknown action, and keeps running", unknown_action),
    Check("bad-blocks", "refuses invalid blocks", bad_blocks),
    Check("unknown-layer", "refuses an unknown layer kind, and names it", unknown_layer),
    Check("no-layers", "refuses a network without layers", no_layers),
    Check("unknown-factory", "refuses a factory that it cannot import", unknown_factory),
)
