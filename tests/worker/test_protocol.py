"""The worker as a process: every line gets one answer, whatever the line and whatever the model does."""

import json
import os
import subprocess
import sys

import pytest
from tests.worker.conftest import measurement

LINEAR = {"factory": "torch.nn:Linear", "arguments": {"in_features": 4, "out_features": 3}}
INPUTS = [{"shape": [5, 4], "dtype": "float32", "high": None}]


def test_hello_reports_machine_and_meter(worker):
    result = worker.ask("hello", watts_per_core=3.5)["result"]
    assert result["protocol"] == 3
    assert result["cores"] >= 1
    assert result["torch"].startswith("2.")
    assert result["meter"] == {"name": "cpu-time", "measured": False, "scope": "3.5 W per busy core"}


@pytest.mark.parametrize("line", ["garbage", "[1]", '"text"', '{"do": "dance"}', "{", '{"do": {}}', "\\u0000"])
def test_nonsense_is_refused_and_the_worker_lives(worker, line):
    assert worker.say(line)["error"]["type"] == "bad_request"
    assert worker.ask("ping")["result"] == {}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"workload": {}},
        {"workload": {**LINEAR, "layers": {}}},
        {"workload": LINEAR, "iterations": 0},
        {"workload": LINEAR, "warmup": "4"},
        {"workload": LINEAR, "pairing": "hour"},
        {"workload": LINEAR, "isolation": "container"},
        {"workload": LINEAR, "seconds_limit": -1},
        {"workload": LINEAR, "watts_per_core": 0},
        {"workload": LINEAR, "setup": {"optimizer": "magic"}},
        {"workload": LINEAR, "setup": {"runtime": "abacus"}},
        {"workload": LINEAR, "setup": 3},
    ],
)
def test_bad_blocks_are_refused(worker, fields):
    assert worker.ask("block", **fields)["error"]["type"] == "bad_request"


@pytest.mark.measured
def test_a_block_has_every_figure(worker):
    result = worker.block({**LINEAR, "inputs": INPUTS}, iterations=5, watts_per_core=2.0)["result"]
    found = measurement(result)
    assert found.iterations == 5
    assert found.parameters == 15
    assert (len(found.target), len(found.yardstick)) == (5, 6)
    assert 0 < found.busy_seconds < 0.1
    assert all(0 < window.busy_seconds < 0.1 for window in found.yardstick)
    assert found.joules == pytest.approx(2.0 * found.busy_seconds, rel=0.1)
    assert found.ratio() > 0
    assert found.conditions.get("resting_bytes", 1e8) > 5e7  # what the library takes, where the system says
    assert set(result) == {"target", "yardstick", "parameters", "loss", "elapsed_seconds", "conditions", "flags"}


def test_a_load_works_and_rests_by_its_pattern(worker):
    done = worker.ask("load", pattern=[1, 0], seconds=0.02)["result"]
    assert done["began"] + 0.02 <= done["ends"][0]
    assert done["began"] + 0.04 <= done["ends"][1]
    for wrong in ({}, {"pattern": [1]}, {"pattern": [], "seconds": 1}, {"pattern": [1, 0], "seconds": 1000}):
        assert worker.ask("load", **wrong)["error"]["type"] == "bad_request"


def test_counters_are_listed(worker):
    assert isinstance(worker.ask("counters")["result"]["counters"], list)


@pytest.mark.measured
def test_the_yardstick_alone(worker):
    result = worker.ask("yardstick", seconds=0.1)["result"]
    assert 0 < result["busy_seconds"] < 0.1
    assert result["steps"] >= 20


def test_what_a_model_prints_or_reads_does_not_reach_the_protocol(worker, workload_of):
    assert "result" in worker.block(workload_of("chatty"))
    assert "result" in worker.block(workload_of("asking"))
    assert worker.ask("ping")["result"] == {}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sulking", "RuntimeError: first line"),
        ("nobody", "no function 'nobody'"),
        ("without_inputs", "no example inputs"),
        ("leaving", "SystemExit: no"),
    ],
)
@pytest.mark.parametrize("isolation", ["inline", "fork"])
def test_a_variant_that_fails_is_reported_in_one_line(worker, workload_of, name, said, isolation):
    error = worker.block(workload_of(name), isolation=isolation)["error"]
    assert error["type"] == "variant_failed"
    assert said in error["message"]
    assert "\n" not in error["message"]


@pytest.mark.parametrize("factory", ["no.such.module:f", "/no/such/file.py:f", "nothing", "torch.nn:nothing"])
def test_unknown_factories_fail(worker, factory):
    assert worker.block({"factory": factory})["error"]["type"] == "variant_failed"


def test_a_loss_that_is_not_finite_is_a_flag(worker, workload_of):
    result = worker.block(workload_of("exploding"))["result"]
    assert "nonfinite_loss" in result["flags"]
    assert None in result["loss"]


def test_a_child_that_dies_is_reported_and_the_worker_lives(worker, workload_of):
    error = worker.block(workload_of("segfault"), isolation="fork")["error"]
    assert error == {"type": "variant_died", "message": "the process that trained the variant was ended by SIGSEGV"}
    assert "exit code 3" in worker.block(workload_of("quitting"), isolation="fork")["error"]["message"]
    assert "result" in worker.block(workload_of("mlp"), isolation="fork")


@pytest.mark.parametrize("isolation", ["inline", "fork"])
def test_out_of_memory_is_reported(worker, isolation):
    huge = {"factory": "torch.nn:Linear", "arguments": {"in_features": 10**7, "out_features": 10**6}}
    error = worker.block({**huge, "inputs": INPUTS}, isolation=isolation)["error"]
    assert error["type"] == "out_of_memory"
    assert worker.ask("ping")["result"] == {}


@pytest.mark.measured
def test_a_block_stops_at_its_limit(worker, workload_of):
    result = worker.block(workload_of("mlp"), iterations=100000, seconds_limit=0.3)["result"]
    assert "short" in result["flags"]
    assert result["elapsed_seconds"] < 20  # all of them would take minutes


def test_the_worker_ends_with_its_input():
    lines = "".join(json.dumps({"id": i, "do": "ping"}) + "\n" for i in range(3))
    done = subprocess.run(
        [sys.executable, "-m", "ampere.worker"], input=lines, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [0, 1, 2]


def test_a_missing_runtime_is_reported(start_worker, tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')")
    worker = start_worker(**{**os.environ, "PYTHONPATH": str(tmp_path)})
    error = worker.block(LINEAR)["error"]
    assert error["type"] == "runtime_missing"
    assert "ampere-energy[torch]" in error["message"]
