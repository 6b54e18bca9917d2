"""The wall clock set by an hour changes nothing; time that was slept makes a block no measurement."""

import ast
import subprocess
import sys
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


IN_A_TIME_NAMESPACE = """
import ctypes, os, sys
from ampere.core.errors import WorkerError
from ampere.meters.system_state import slept_seconds
from ampere.worker import block

NEW_TIME, system = 0x80, ctypes.CDLL(None, use_errno=True)

def suspend(seconds):
    # Time since the start goes on while a machine sleeps, and its monotonic clock does not.
    if system.unshare(NEW_TIME):
        sys.exit(77)
    with open("/proc/self/timens_offsets", "w") as offsets:
        offsets.write(f"boottime {seconds} 0")
    entered = os.open("/proc/self/ns/time_for_children", os.O_RDONLY)
    if system.setns(entered, NEW_TIME):
        sys.exit(77)

def trained(request, report):
    suspend(30 * (1 + len(slept)))
    slept.append(slept_seconds())
    return {"flags": []}

slept, block._isolated = [slept_seconds()], trained
try:
    block.block({"workload": {"factory": "a:b"}})
except WorkerError as problem:
    print(problem)
print(*(round(later - before) for before, later in zip(slept, slept[1:])))
"""


def test_a_real_clock_that_goes_on_while_the_other_stands_is_a_suspend(record_property):
    """Without a mock: a time namespace moves CLOCK_BOOTTIME of this process alone."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        pytest.skip("this system does not report how long it slept")
    in_namespace = ["unshare", "--user", "--map-root-user", sys.executable, "-c", IN_A_TIME_NAMESPACE]
    try:
        ran = subprocess.run(in_namespace, capture_output=True, text=True, timeout=60, check=False)
    except FileNotFoundError:
        pytest.skip("there is no unshare here")
    if ran.returncode == 77 or "unshare failed" in ran.stderr:
        pytest.skip("time namespaces are not allowed here")
    assert ran.stdout.splitlines() == [
        "the machine went to sleep during a measurement: keep it awake and measure again",
        "60 30 30",
    ], ran.stderr
    record_property("figure", "a suspend of 30 s by the kernel's own clocks: no measurement, 3 of 3")
