"""Checks of heartbeats while a worker trains, and of its end when the host is gone."""

from __future__ import annotations

import json
import time
from itertools import pairwise

from ampere.core.protocol import PROTOCOLS
from ampere.devices.conformance.candidate import Candidate
from ampere.devices.conformance.outcome import Broken, Check, NotOffered

from .blocks import perceptron
from .handshake import hello

BEAT_SECONDS, WORK_SECONDS = 0.5, 2.0
MISSED = 3  # heartbeats in a row, after which a host takes a worker for dead
LEAVING_SECONDS = 15.0
LONG_BLOCK = {"workload": perceptron(), "iterations": 1_000_000, "seconds_limit": 30.0}


def beats(candidate: Candidate) -> None:
    if hello(candidate).get("beat_seconds", "none") == "none":
        raise NotOffered("hello has no beat_seconds: a host notices a hanging worker only by its time limit")
    answered = candidate.result("hello", protocols=list(PROTOCOLS), beat_seconds=BEAT_SECONDS)
    if answered["beat_seconds"] != BEAT_SECONDS:
        raise Broken(
            f"the host asked for a heartbeat every {BEAT_SECONDS} s, and it answered {answered['beat_seconds']!r}"
        )
    candidate.result(
        "block", workload=perceptron(), iterations=5, warmup=1
    )  # importing a runtime may block heartbeats once
    candidate.beats.clear()
    began = time.monotonic()
    candidate.result("block", workload=perceptron(), iterations=1_000_000, warmup=1, seconds_limit=WORK_SECONDS)
    gaps = [b - a for a, b in pairwise([began, *candidate.beats, time.monotonic()])]
    if max(gaps) > MISSED * BEAT_SECONDS:
        raise Broken(f"it sent no heartbeat for {max(gaps):.1f} s of training, at an interval of {BEAT_SECONDS} s")
    candidate.result("hello", protocols=list(PROTOCOLS))


def leaves(candidate: Candidate) -> None:
    candidate.result("ping")
    candidate.wire.hang_up()
    if not candidate.wire.ended(LEAVING_SECONDS):
        raise Broken(f"it is still running {LEAVING_SECONDS:g} s after the host closed the connection")
    candidate.anew()
    candidate.result("ping")


def leaves_work(candidate: Candidate) -> None:
    candidate.result("ping")
    candidate.say(json.dumps({"id": 1, "do": "block", **LONG_BLOCK}))
    time.sleep(0.3)
    candidate.wire.hang_up()
    if not candidate.wire.ended(LEAVING_SECONDS):
        raise Broken(f"it is still training {LEAVING_SECONDS:g} s after the host closed the connection")
    candidate.anew()
    candidate.result("ping")


CHECKS = (
    Check("beats", "sends heartbeats while it trains", beats),
    Check("leaves", "ends when the host closes the connection, and can be used again", leaves),
    Check("leaves-work", "ends even in the middle of a block", leaves_work),
)
