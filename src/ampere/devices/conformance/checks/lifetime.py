"""Signs of life while it works, and its end when nobody is left to ask."""

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
MISSED = 3  # beats in a row, after which a host gives a worker up
LEAVING_SECONDS = 15.0
LONG_BLOCK = {"subject": perceptron(), "iterations": 1_000_000, "seconds_limit": 30.0}


def beats(candidate: Candidate) -> None:
    if hello(candidate).get("beat_seconds", "none") == "none":
        raise NotOffered("hello has no beat_seconds: a host notices only by its time limit that it hangs")
    said = candidate.result("hello", protocols=list(PROTOCOLS), beat_seconds=BEAT_SECONDS)
    if said["beat_seconds"] != BEAT_SECONDS:
        raise Broken(f"asked for a sign of life every {BEAT_SECONDS} s, it says {said['beat_seconds']!r}")
    candidate.result("block", subject=perceptron(), iterations=5, warmup=1)  # what is loaded at first may block it
    candidate.beats.clear()
    began = time.monotonic()
    candidate.result("block", subject=perceptron(), iterations=1_000_000, warmup=1, seconds_limit=WORK_SECONDS)
    gaps = [b - a for a, b in pairwise([began, *candidate.beats, time.monotonic()])]
    if max(gaps) > MISSED * BEAT_SECONDS:
        raise Broken(f"while it trained it said nothing for {max(gaps):.1f} s, at a beat of {BEAT_SECONDS} s")
    candidate.result("hello", protocols=list(PROTOCOLS))


def leaves(candidate: Candidate) -> None:
    candidate.result("ping")
    candidate.wire.hang_up()
    if not candidate.wire.ended(LEAVING_SECONDS):
        raise Broken(f"it is still there {LEAVING_SECONDS:g} s after the host hung up")
    candidate.anew()
    candidate.result("ping")


def leaves_work(candidate: Candidate) -> None:
    candidate.result("ping")
    candidate.say(json.dumps({"id": 1, "do": "block", **LONG_BLOCK}))
    time.sleep(0.3)
    candidate.wire.hang_up()
    if not candidate.wire.ended(LEAVING_SECONDS):
        raise Broken(f"{LEAVING_SECONDS:g} s after the host hung up it still trains for nobody")
    candidate.anew()
    candidate.result("ping")


CHECKS = (
    Check("beats", "says that it is alive while it trains", beats),
    Check("leaves", "leaves when the host hangs up, and is there again", leaves),
    Check("leaves-work", "leaves even in the middle of a block", leaves_work),
)
