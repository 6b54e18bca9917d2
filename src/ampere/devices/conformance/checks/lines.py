"""Checks of the lines: each request is one line, and gets one line as its answer."""

from __future__ import annotations

import json
import time

from ampere.core.protocol import MOST_LINE_BYTES
from ampere.devices.conformance.candidate import Candidate
from ampere.devices.conformance.outcome import Broken, Check

NONSENSE = (
    "garbage",
    "[1]",
    '"text"',
    "{",
    '{"do": {}}',
    "[" * 2000,
    "\\u0000",
    '{"id": 5}',
    '{"id": {}, "do": "ping"}',
    '{"do": "ping", "x": NaN}',
)
SILENT_SECONDS = 0.5
LONG = 1_000_000  # characters: a network of some thousand layers


def ids(candidate: Candidate) -> None:
    for name in (7, "seven", None, 2**40):
        candidate.say(json.dumps({"id": name, "do": "ping"}))
        answered = candidate.hear()["id"]
        if answered != name:
            raise Broken(f"a request with id {name!r} was answered with id {answered!r}")


def order(candidate: Candidate) -> None:
    candidate.say("\n".join(json.dumps({"id": number, "do": "ping"}) for number in range(20)))
    answered = [candidate.hear()["id"] for _ in range(20)]
    if answered != list(range(20)):
        raise Broken(f"twenty requests at once were answered with ids {answered}")


def empty(candidate: Candidate) -> None:
    candidate.say("\n\n")
    if not candidate.silent(SILENT_SECONDS):
        raise Broken("it answered an empty line, which is a heartbeat of the host")
    candidate.result("ping")


def nonsense(candidate: Candidate) -> None:
    for line in NONSENSE:
        candidate.say(line)
        answer = candidate.hear()
        if answer.get("error", {}).get("type") != "bad_request":
            raise Broken(f"to {line[:20]!r} it answered {json.dumps(answer)[:80]}, not bad_request")
    candidate.result("ping")


def long(candidate: Candidate) -> None:
    candidate.result("ping", padding="x" * LONG)


def too_long(candidate: Candidate) -> None:
    try:
        candidate.say("x" * (MOST_LINE_BYTES + 1))
        answer = candidate.hear()
    except Broken:  # it may also end
        candidate.anew()
    else:
        if answer.get("error", {}).get("type") != "bad_request":
            raise Broken(f"to a line of more than {MOST_LINE_BYTES} bytes it answered {json.dumps(answer)[:80]}")
    candidate.result("ping")


def unknown_fields(candidate: Candidate) -> None:
    candidate.result("ping", of_a_later_version={"deep": [1, 2, {"er": None}]})


def pieces(candidate: Candidate) -> None:
    for byte in b'{"id": 1, "do": "ping", "text": "\xc3\xa4"}':
        candidate.wire.send(bytes([byte]))
        time.sleep(0.002)
    candidate.say("")
    if "result" not in candidate.hear():
        raise Broken("a request that arrives in pieces was refused")


CHECKS = (
    Check("ids", "answers with the id of the request", ids),
    Check("order", "answers every request once, in order", order),
    Check("empty", "takes an empty line for a heartbeat", empty),
    Check("nonsense", "refuses what is not a request, and keeps running", nonsense),
    Check("long", "reads a line of a million characters", long),
    Check("too-long", f"refuses a line of more than {MOST_LINE_BYTES} bytes, and can be used again", too_long),
    Check("unknown-fields", "ignores unknown fields", unknown_fields),
    Check("pieces", "reads a request that arrives in pieces", pieces),
)
