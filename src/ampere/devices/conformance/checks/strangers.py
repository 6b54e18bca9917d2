"""Checks of a worker that listens: nobody is obeyed who does not present the token, and nobody waits for another."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping
from typing import Any

from ampere.core.protocol import PROTOCOLS
from ampere.devices.conformance.candidate import Candidate, Wire, connected
from ampere.devices.conformance.outcome import Broken, Check, NotOffered
from ampere.devices.tcp import token_field

from .blocks import perceptron

AT_ONCE_SECONDS = 3.0
SILENT_SECONDS = 15.0
ORDER = json.dumps({"id": 1, "do": "block", "workload": perceptron()})
HTTP = f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(ORDER) + 2}\r\n\r\n{ORDER}\r\n"
FIRST_LINES = (HTTP, ORDER + "\n", '{"id": 1, "do": "ping"}\n', "\x16\x03\x01\n", "\n" + ORDER + "\n", "x" * 20_000)


def token(candidate: Candidate) -> None:
    for given in ({}, {"token": "wrong"}, {"token": 1}, {"token": None}):
        answer = _answer_to(
            candidate, json.dumps({"id": 1, "do": "hello", "protocols": list(PROTOCOLS), **given}) + "\n"
        )
        if not answer or answer.get("error", {}).get("type") != "unauthorized":
            raise Broken(f"to a handshake with {given or 'no token'} it answered {json.dumps(answer)[:80]}")


def first_line(candidate: Candidate) -> None:
    for line in FIRST_LINES:
        answer = _answer_to(candidate, line)
        if answer and "result" in answer:
            raise Broken(f"it obeyed {line[:40]!r}, which is not a handshake")


def silence(candidate: Candidate) -> None:
    wire = _stranger(candidate)
    try:
        if not wire.ended(SILENT_SECONDS):
            raise Broken(f"it keeps a connection that has said nothing for {SILENT_SECONDS:g} s")
    finally:
        wire.close()


def busy(candidate: Candidate) -> None:
    candidate.result("ping")
    began = time.monotonic()
    answer = _answer_to(candidate, _handshake(token_field()))
    if not answer or answer.get("error", {}).get("type") != "busy" or time.monotonic() - began > AT_ONCE_SECONDS:
        raise Broken("a second host was not answered with busy at once")
    candidate.result("ping")


def _handshake(token: Mapping[str, Any]) -> str:
    return json.dumps({"id": 1, "do": "hello", "protocols": list(PROTOCOLS), **token}) + "\n"


def _answer_to(candidate: Candidate, first: str) -> Any:
    """What a new connection gets for its first line before it ends, None for nothing; Broken where it does not end."""
    wire, answer = _stranger(candidate), None
    try:
        with contextlib.suppress(OSError):
            wire.send(first.encode())
        until = time.monotonic() + AT_ONCE_SECONDS
        while (line := wire.line(max(0.0, until - time.monotonic()))) is not None:
            answer = answer or (json.loads(line) if line else None)
        return answer
    except TimeoutError:
        raise Broken(f"it did not end the connection after {first[:40]!r}") from None
    except ValueError:
        raise Broken(f"it answered {first[:40]!r} with something else than JSON") from None
    finally:
        wire.close()


def _stranger(candidate: Candidate) -> Wire:
    if not candidate.listens:
        raise NotOffered("whoever starts a worker over a pipe is its host: there are no strangers")
    return connected(candidate.target)


CHECKS = (
    Check("token", "refuses a host without the right token", token),
    Check("first-line", "ends a connection that does not begin with the handshake", first_line),
    Check("silence", "ends a connection that says nothing", silence),
    Check("busy", "answers a second host at once", busy),
)
