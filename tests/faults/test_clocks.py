"""The wall clock set by an hour changes nothing; time that was slept makes a block no measurement."""

import ast
import time
from pathlib import Path

import pytest

import ampere
from ampere.core.errors import WorkerError
from ampere.meters import CpuTimeMeter
from ampere.worker import block
from ampere.worker.measuring import window

pytestmark = pytest.mark.fault(15)

SOURCE = Path(ampere.__file__).parent
MEASURING = [path for unit in ("worker", "devices", "profiling") for path in (SOURCE / unit).rglob("*.py")]


@pytest.mark.parametrize("hours", [-1, 1])
def test_the_wall_clock_is_not_looked_at(monkeypatch, hours):
    real, moved = time.time, []

    def step():
        moved.append(hours * 3600)
        monkeypatch.setattr(time, "time", lambda: real() + sum(moved))
        until = time.perf_counter() + 0.01
        while time.perf_counter() < until:
            pass

    found = window(step, 3, CpuTimeMeter())
    assert 0.03 <= found.wall_seconds < 3.0


@pytest.mark.parametrize("path", MEASURING, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_nothing_that_measures_asks_the_wall_clock(path):
    calls = [ast.unparse(n.func) for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)]
    assert not {"time.time", "time.time_ns", "datetime.now", "datetime.utcnow"} & set(calls)


@pytest.mark.parametrize(("slept", "measured"), [(0.9, True), (1.1, False)])
def test_a_suspend_of_more_than_a_second_is_no_measurement(monkeypatch, slept, measured):
    nights = iter([0.0, slept, slept, 2 * slept, 2 * slept, 3 * slept])
    monkeypatch.setattr(block, "slept_seconds", lambda: next(nights))
    monkeypatch.setattr(block, "_isolated", lambda request, tell: {"flags": []})
    request = {"workload": {"factory": "a:b"}}
    if measured:
        assert block.block(request) == {"flags": []}
        return
    with pytest.raises(WorkerError, match="the machine went to sleep"):
        block.block(request)


def test_one_that_slept_once_is_measured_again(monkeypatch):
    nights = iter([0.0, 30.0, 30.0, 30.0])
    monkeypatch.setattr(block, "slept_seconds", lambda: next(nights))
    monkeypatch.setattr(block, "_isolated", lambda request, tell: {"flags": []})
    assert block.block({"workload": {"factory": "a:b"}}) == {"flags": []}
