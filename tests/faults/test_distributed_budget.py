"""Two ranks that train together have one budget: they end after the same step, and every joule counts once."""

import contextlib
import importlib.util
import json
import os
import signal
import socket

import pytest
from tests.processes import start_script

pytestmark = pytest.mark.fault(28)
if not hasattr(os, "fork"):
    pytest.skip("ranks are forked, and processes cannot be forked here", allow_module_level=True)
RANKS = "import runpy; runpy.run_module('tests.faults.ranks', run_name='__main__')"
LIGHTNING = importlib.util.find_spec("lightning") is not None


@pytest.fixture(name="jobs", scope="module")
def what_two_real_ranks_say(tmp_path_factory):
    """Each job by rank. No rank may hang: 120 s is for a busy machine."""
    counter = tmp_path_factory.mktemp("ranks") / "counter"
    counter.touch()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    ranks = start_script(RANKS, port, str(counter), *(["lightning"] if LIGHTNING else []))
    try:
        said, _ = ranks.communicate(timeout=120)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(ranks.pid, signal.SIGKILL)
    assert ranks.returncode == 0
    lines = sorted((json.loads(line) for line in said.splitlines() if line.startswith(b"{")), key=lambda r: r["rank"])
    return {job: [line for line in lines if line["job"] == job] for job in ("plain", "lightning", "death")}


def test_in_a_plain_loop_both_end_after_the_same_step_with_the_joules_of_both(jobs, record_property):
    first, second = jobs["plain"]
    assert (first["stopped"], second["stopped"], second["steps"]) == (True, True, first["steps"])
    assert 50 <= 4 * first["steps"] <= 100  # a joule and three joules a step
    assert 4 * first["steps"] - 4 <= max(first["spent"], second["spent"]) <= 4 * first["steps"]
    assert first["warned"] + second["warned"] == 1
    assert "2 ranks" in first["summary"]
    record_property(
        "figure", f"2 gloo ranks, 100 J: both end after step {first['steps']}, {4 * first['steps']} J spent"
    )


@pytest.mark.skipif(not LIGHTNING, reason="Lightning is not installed: pip install 'ampere-energy[lightning]'")
def test_in_lightning_one_rank_reads_the_counter_and_both_end_after_the_same_batch(jobs, record_property):
    first, second = jobs["lightning"]
    assert (first["stopped"], second["stopped"], second["steps"]) == (True, True, first["steps"])
    assert 100 <= 4 * first["steps"] <= 200
    assert first["updates"] == second["updates"]
    assert sorted([first["reads"] > 0, second["reads"] > 0]) == [False, True]
    record_property("figure", f"Lightning, 200 J: both end after batch {first['steps']}, one rank reads the counter")


def test_a_rank_goes_on_alone_when_the_other_is_killed(jobs, record_property):
    [alone] = jobs["death"]
    assert alone["stopped"]
    assert 250 <= alone["spent"] <= 300
    assert alone["steps"] > 50
    record_property("figure", f"rank 0 killed: rank 1 goes on alone to step {alone['steps']} and stops there")
