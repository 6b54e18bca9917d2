"""Blocks whose joules a counter reads: windows long enough for it, and no invented joule when it fails."""

import os

import pytest
from tests.sysfs_tree import Machine, add_powercap, add_zone, put
from tests.worker.conftest import measurement

from ampere.core.windows import plan_for_counter

WATTS = 6.0


@pytest.fixture(name="metered", scope="module")
def a_worker_with_a_counter(tmp_path_factory, start_worker):
    """The machine draws the same whatever the worker does, so a step's joules are its seconds times WATTS."""
    sysfs = tmp_path_factory.mktemp("sys")
    with Machine(add_powercap(sysfs), idle=WATTS, busy=0.0):
        worker = start_worker(**{**os.environ, "AMPERE_SYSFS": str(sysfs), "AMPERE_METER": ""})
        assert worker.ask("hello")["result"]["meter"]["name"] == "powercap"
        yield worker
        worker.end()


COUNTER = f"""
import time

class Counter:
    update_seconds, reading_unit = 0.001, "J"

    def describe(self):
        return {{"name": "imitated", "measured": True, "scope": "this process", "window_seconds": 0.2}}

    def start(self):
        self.before = self.reading()

    def stop(self):
        return self.reading() - self.before

    def reading(self):
        return {WATTS} * time.process_time()

def find(root):
    return Counter()
"""


@pytest.fixture(name="exact", scope="module")
def a_worker_with_a_counter_of_its_own_work(tmp_path_factory, start_worker):
    """Brought as others bring theirs. It advances with the worker's CPU time, so a busy machine changes nothing."""
    tmp_path = tmp_path_factory.mktemp("brought")
    (tmp_path / "imitated_counter.py").write_text(COUNTER)
    put(tmp_path / "imitated-1.dist-info" / "METADATA", "Metadata-Version: 2.1\nName: imitated\nVersion: 1\n")
    put(tmp_path / "imitated-1.dist-info" / "entry_points.txt", "[ampere.meters]\nimitated = imitated_counter:find\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    worker = start_worker(**{**os.environ, "PYTHONPATH": path, "AMPERE_METER": "imitated"})
    assert worker.ask("hello")["result"]["meter"]["name"] == "imitated"
    yield worker
    worker.end()


def test_windows_are_as_long_as_the_counter_needs():
    plan = plan_for_counter(10, step_seconds=0.01, yardstick_seconds=0.002, counter_seconds=3.0)
    assert plan.targets == (100, 100, 100)
    assert plan.yardsticks == 500
    assert plan_for_counter(10, 1.0, 1.0, 0.1).targets == (4, 4, 4)


@pytest.mark.parametrize("pairing", ["step", "window", "plain"])
def test_joules_are_the_counters(exact, workload_of, pairing):
    block = measurement(exact.block(workload_of("mlp"), pairing=pairing)["result"])
    assert block.joules / block.busy_seconds == pytest.approx(WATTS, rel=0.02)
    assert len(block.yardstick) == (0 if pairing == "plain" else len(block.target) + 1)
    for window in block.yardstick:
        assert window.joules / window.busy_seconds == pytest.approx(WATTS, rel=0.02)


def test_the_yardsticks_joules_are_the_counters_too(exact):
    alone = exact.ask("yardstick", seconds=0.2)["result"]
    assert alone["joules"] / alone["busy_seconds"] == pytest.approx(WATTS, rel=0.05)


@pytest.mark.alone
def test_joules_of_sysfs_are_those_of_the_machine(metered, workload_of):
    block = measurement(metered.block(workload_of("mlp"))["result"])
    joules, seconds = (sum(getattr(w, name) for w in block.target) for name in ("joules", "wall_seconds"))
    assert 0.6 * WATTS < joules / seconds < 3 * WATTS


@pytest.mark.alone
def test_where_only_time_is_asked_for_the_counter_is_left_alone(metered, workload_of):
    block = measurement(metered.block(workload_of("mlp"), count=False)["result"])
    assert {window.joules for window in (*block.target, *block.yardstick)} == {None}
    assert block.ratio() > 0


@pytest.mark.alone
def test_the_power_at_rest_is_read_before_the_yardstick(metered):
    alone = metered.ask("yardstick", seconds=0.2)["result"]
    assert alone["watts_idle"] == pytest.approx(WATTS, rel=0.3)


@pytest.mark.alone
def test_a_stage_is_too_short_for_a_counter(metered, layers_workload, examples):
    error = metered.block(layers_workload(*examples["linear"][:1]), stage="forward")["error"]
    assert error["type"] == "bad_request"
    assert "too slow to measure the forward stage" in error["message"]


def test_without_a_counter_a_block_is_as_it_was(worker, workload_of):
    block = measurement(worker.block(workload_of("mlp"))["result"])
    assert block.joules == pytest.approx(5.0 * block.busy_seconds, rel=0.2)


@pytest.mark.alone
def test_a_counter_that_fails_stores_nothing(tmp_path, start_worker, workload_of):
    counter = add_zone(tmp_path, "intel-rapl:0", "package-0")
    environment = {**os.environ, "AMPERE_SYSFS": str(tmp_path), "AMPERE_METER": ""}
    with Machine(lambda joules, watts: put(counter, int(1e6 * joules))):
        worker = start_worker(**environment)
        assert worker.ask("hello")["result"]["meter"]["measured"] is True
    for fault in ("stands still", "is gone"):
        answer = worker.block(workload_of("mlp"))
        assert "result" not in answer, fault
        assert answer["error"]["type"] == "meter_failed", fault
        counter.unlink(missing_ok=True)


def test_one_failed_read_is_measured_again(tmp_path, monkeypatch):
    from ampere.meters import meter_failed
    from ampere.worker import block

    tries = iter([meter_failed("set back"), {"joules": 1.0, "flags": []}])

    def attempt(request, report):
        answer = next(tries)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(block, "_isolated", attempt)
    assert block.block({"workload": {"factory": "a:b"}})["joules"] == 1.0


def test_a_yardstick_that_is_only_timed_waits_for_no_counter(exact):
    counted, timed = (exact.ask("yardstick", seconds=0.05, count=count)["result"] for count in (True, False))
    assert counted["joules"] == pytest.approx(WATTS * counted["busy_seconds"], rel=0.1)
    assert (timed["joules"], timed["watts_idle"]) == (None, None)
    assert 2 * timed["steps"] < counted["steps"]  # 0.05 s of steps, and those of a counter's window
