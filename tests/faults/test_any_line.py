"""Any bytes on the wire: each end makes a usable record of a line, or refuses it with an error of its own."""

import json
import math
import os

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.wire import ACTIONS, host_reads, worker_reads

from ampere.core import Measurement
from ampere.core.errors import AmpereError, WorkerError
from ampere.devices import Yardstick
from ampere.devices.conformance.lying import HONEST

pytestmark = pytest.mark.fault(23)

EXAMPLES = int(os.environ.get("AMPERE_EXAMPLES", "100"))
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=10**300),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["5", "\x1b]52;c;\x07", "NaN", 1e308, -1e308, 5e-324, 2**63, -0.0]),
)
VALUES = st.recursive(LEAVES, lambda v: st.lists(v, max_size=4) | st.dictionaries(st.text(max_size=8), v, max_size=4))
LAYERS = {"layers": {"batch": 1, "layers": []}}
REQUESTS = {
    "hello": {"protocols": [3], "beat_seconds": 5.0, "watts_per_core": 5.0, "meter": "rapl"},
    "ping": {},
    "block": {"workload": LAYERS, "setup": {"threads": 1}, "iterations": 2, "seconds_limit": 1.0, "count": True},
    "yardstick": {"seconds": 0.1, "threads": 1, "runtime": "torch", "power": False},
    "counters": {"check": False},
    "load": {"pattern": [1, 0], "seconds": 0.1},
}
ANSWERS = {**HONEST, "ping": {}, "load": {"began": 1.0, "ends": [2.0, 3.0]}}


def places(value, here=()):
    """The path to every part of a value."""
    yield here
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        yield from places(part, (*here, name))


def changed(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else [*value]
    copy[path[0]] = changed(copy[path[0]], path[1:], new)
    return copy


@st.composite
def almost(draw, honest, frame):
    """A line of a known kind in which up to three parts are anything."""
    do = draw(st.sampled_from(ACTIONS))
    record = frame(do, honest[do])
    for _ in range(draw(st.integers(0, 3))):
        path = draw(st.sampled_from([*places(record)][1:] or [()]))
        record = changed(record, path, draw(VALUES))
    return do, json.dumps(record).encode() + b"\n"


def numbers_in(found):
    if isinstance(found, Measurement):
        return [n for window in (*found.target, *found.yardstick) for n in window if n is not None]
    return [n for n in vars(found).values() if n is not None] if isinstance(found, Yardstick) else []


def tried(read, *given):
    """What was read of a line, and the one line of an error."""
    try:
        return read(*given), ""
    except (AmpereError, WorkerError) as error:
        return None, str(error)


@settings(max_examples=EXAMPLES)
@given(almost(ANSWERS, lambda do, result: {"id": 1, "result": result}))
def test_a_host_uses_an_answer_or_refuses_it(case):
    do, line = case
    found, refusal = tried(host_reads, line, do)
    assert "\n" not in refusal
    assert all(math.isfinite(number) and number >= 0 for number in numbers_in(found))


@settings(max_examples=EXAMPLES)
@given(almost(REQUESTS, lambda do, fields: {"id": 1, "do": do, **fields}))
def test_a_worker_takes_a_request_or_refuses_it(case):
    assert "\n" not in tried(worker_reads, case[1])[1]


@settings(max_examples=EXAMPLES)
@given(st.binary(max_size=200), st.sampled_from(ACTIONS))
@example(b"[" * 100_000, "hello")
@example(b'{"id":' * 100_000, "hello")
@example(b'{"id": 1' + b"0" * 10_000 + b"}", "hello")
@example(b"\xff\xfe\x00", "ping")
def test_any_bytes(line, do):
    assert "\n" not in tried(host_reads, line, do)[1]
    assert "\n" not in tried(worker_reads, line)[1]


@pytest.mark.parametrize("do", ACTIONS)
def test_honest_lines_are_understood(do):
    assert host_reads(json.dumps({"id": 1, "result": ANSWERS[do]}).encode(), do) is not None
    assert worker_reads(json.dumps({"id": 1, "do": do, **REQUESTS[do]}).encode())
