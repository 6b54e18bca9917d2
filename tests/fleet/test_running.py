"""The same work on many devices: one that fails, hangs or vanishes is named, and the others go on."""

import os
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.fleet.fleets import answers, negative
from tests.processes import WarmProcess

from ampere import __version__
from ampere.core.errors import BusyError, DeviceError, ProfileError
from ampere.fleet import cluster as cluster_module
from ampere.fleet import running
from ampere.fleet.cluster import spread
from ampere.fleet.files import FleetDevice
from ampere.fleet.running import HERE, Outcome, Task, machine_of, perform, run_all, skipping

dask = pytest.mark.skipif(find_spec("distributed") is None, reason="dask.distributed is not installed")


def task(name: str = "a", address: str = "simulated:tx2", **more) -> Task:
    return Task(FleetDevice(name, address), "check", {}, **more)


@pytest.mark.parametrize(
    ("address", "machine"),
    [
        ("local", HERE),
        ("ssh://me@localhost", HERE),
        ("ssh://me@phone:8022", "phone"),
        ("tcp://board:7700", "board"),
        ("simulated:tx2", "a"),
        ("replayed:x.json", "a"),
    ],
)
def test_devices_of_one_machine_share_its_name(address, machine):
    assert machine_of(FleetDevice("a", address)) == machine


def test_a_device_that_fails_is_tried_again(monkeypatch):
    monkeypatch.setattr(running, "PAUSE_SECONDS", 0.0)
    tried = []

    def second_time(action, device, arguments):
        tried.append(device.name)
        if len(tried) == 1:
            raise BusyError("another process measures there")
        return {"fine": True}

    found = perform(task(), second_time)
    assert (found.result, found.attempts, found.problem) == ({"fine": True}, 2, "")


def test_what_would_fail_again_is_not_tried_again():
    tried = []

    def wrong_profile(action, device, arguments):
        tried.append(1)
        raise ProfileError("the profile is of another device")

    assert perform(task(attempts=5), wrong_profile).problem == "the profile is of another device"
    assert tried == [1]


def test_a_device_that_hangs_is_left_behind():
    found = perform(task("slow", attempts=1, seconds=0.05), answers)
    assert found.result is None
    assert "did not end within 0.05 s" in found.problem


def test_a_mistake_of_ours_is_an_outcome_too():
    assert "ZeroDivisionError: oh" in perform(task("bug"), answers).problem


def test_what_an_earlier_run_has_done_is_not_done_again():
    first, second = task("a"), task("b")
    ended = {first.key: Outcome("a", "check", {"x": 1}), second.key: Outcome("b", "check", None, "failed")}
    left, done = skipping([first, second], ended)
    assert (left, [outcome.device for outcome in done]) == ([second], ["a"])


@dask
def test_all_devices_end_also_where_some_fail():
    tasks = [task(name, attempts=1, seconds=0.5) for name in ("a", "b", "gone", "bug", "slow")]
    tasks.append(task("here", "local", attempts=1))
    found = {outcome.device: outcome for outcome in run_all(tasks, answers)}
    assert {name for name, outcome in found.items() if outcome.result} == {"a", "b", "here"}
    assert "switch it on" in found["gone"].problem
    assert list(found)[-1] == "here"  # this machine's own cores come last


def spanned(action, device, arguments):
    began = time.monotonic()
    time.sleep(0.1)
    return {"span": (began, time.monotonic())}


@dask
def test_one_machine_is_measured_once_at_a_time():
    tasks = [task(f"a{n}", f"tcp://board:{n + 1}", attempts=1) for n in range(3)]
    spans = sorted(outcome.result["span"] for outcome in run_all(tasks, spanned))
    assert len(spans) == 3
    assert all(later[0] >= earlier[1] for earlier, later in pairwise(spans))


@dask
def test_a_scheduler_that_is_not_there_is_one_line(monkeypatch):
    monkeypatch.setattr(cluster_module, "CONNECTING_SECONDS", 0.3)
    with pytest.raises(DeviceError, match="cannot be reached"):
        list(run_all([task()], answers, "tcp://127.0.0.1:9"))


@dask
@pytest.mark.fault(21)
def test_a_device_whose_worker_never_comes_back_or_has_another_ampere_is_named(monkeypatch, tmp_path):
    from distributed import LocalCluster

    (tmp_path / "ampere").mkdir()
    (tmp_path / "ampere" / "__init__.py").write_text('__version__ = "0.0.1"\n')

    monkeypatch.setattr(cluster_module, "POLL_SECONDS", 0.1)
    monkeypatch.setattr(cluster_module, "LOST_SECONDS", 0.3)
    with LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0", silence_logs=50) as cluster:
        address = cluster.scheduler_address
        started = [_worker(address, "slow"), _worker(address, "old", str(tmp_path))]
        try:
            cluster.wait_for_workers(2, timeout=60)
            outcomes = run_all([task("slow"), task("old"), task("nobody")], answers, address)
            old, nobody = next(outcomes), next(outcomes)
            assert old.problem == f"its dask worker has Ampere 0.0.1: install {__version__} there"
            assert nobody.device == "nobody"
            started[0].kill()
            [found] = outcomes
            assert "was lost for 0.3 s" in found.problem
            assert started[1].poll() is None  # the other one was sent nothing that it could not unpack
        finally:
            for process in started:
                process.kill()
                process.wait()


@dask
@pytest.mark.fault(21)
def test_a_scheduler_that_ends_in_the_middle_is_one_line_for_each_device(monkeypatch):
    from distributed import LocalCluster

    monkeypatch.setattr(cluster_module, "POLL_SECONDS", 0.1)
    monkeypatch.setattr(cluster_module, "LOST_SECONDS", 0.1)
    with LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0", silence_logs=50) as cluster:
        process = _worker(cluster.scheduler_address, "slow")
        try:
            cluster.wait_for_workers(1, timeout=60)
            outcomes = run_all([task("slow"), task("nobody")], answers, cluster.scheduler_address)
            next(outcomes)
            cluster.close()
            [found] = outcomes
            assert found.result is None
            assert "lost" in found.problem
        finally:
            process.kill()
            process.wait()


@dask
@pytest.mark.fault(21)
def test_a_worker_that_is_killed_loses_nothing_that_others_do(record_property):
    """A real scheduler and real worker processes; the worker of one device is killed in the middle."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0", silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        address = cluster.scheduler_address
        started = {name: _worker(address, name) for name in ("a", "slow")}
        try:
            client.wait_for_workers(2, timeout=60)
            found = {}
            for outcome in run_all([task("a"), task("slow"), task("nobody")], answers, address):
                found[outcome.device] = outcome
                if outcome.device == "a":
                    assert outcome.result["process"] != os.getpid()
                    started["slow"].kill()
                    started["again"] = _worker(address, "slow")  # whoever keeps the device starts another one
            assert found["a"].result
            assert "no dask worker fronts nobody" in found["nobody"].problem
            assert found["slow"].result  # it was done again by the new worker
            record_property(
                "figure", "a dask worker killed: its task is done by the next one, the others are not touched"
            )
        finally:
            for process in started.values():
                process.kill()
                process.wait()


@dask
@pytest.mark.fault(21)
def test_a_scheduler_that_is_started_again_loses_nothing(monkeypatch, record_property):
    """A real scheduler process is killed in the middle and started again on its port, with its workers."""
    monkeypatch.setattr(cluster_module, "POLL_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address, started = f"tcp://127.0.0.1:{port}", []

    def start() -> None:
        started[:] = [_scheduler(port), _worker(address, "a"), _worker(address, "slow")]

    start()
    try:
        assert cluster_module.comes_back(address, ["a", "slow"])
        found = {}
        for outcome in run_all([task("a"), task("slow")], answers, address):
            if outcome.device == "a":
                _stop(started)
                start()
            found[outcome.device] = outcome
        assert all(outcome.result for outcome in found.values())
        notices = []
        made = spread(negative, range(40), address, notices.append)  # another command uses the same scheduler
        numbers = [next(made), next(made)]
        _stop(started[:1])  # and goes on by itself where nobody starts it again
        monkeypatch.setattr(cluster_module, "LOST_SECONDS", 0.1)
        assert sorted([*numbers, *made]) == [-n for n in reversed(range(40))]
        assert "was lost" in notices[0]
        record_property("figure", "a scheduler killed and started again: its tasks are sent again, nothing is lost")
    finally:
        _stop(started)


def _stop(processes) -> None:
    for process in processes:
        process.kill()
        process.wait()


def _scheduler(port: int) -> Any:
    return _dask("scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")


def _worker(scheduler: str, name: str, packages: str = "") -> Any:
    words = [scheduler, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--resources", f"{name}=1"]
    return _dask("worker", *words, "--name", f"{name} {time.monotonic()}", packages=packages)


def _dask(what: str, *words: str, packages: str = "") -> Any:
    """A process of dask's. It starts warm, unless it is to find other packages than we have."""
    quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    module, root = f"distributed.cli.dask_{what}", Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": packages or os.pathsep.join([str(root), f"{root}/src"])}
    if packages or os.name != "posix":
        return subprocess.Popen([sys.executable, "-m", module, *words], env=environment, **quiet)
    code = f"import sys; from {module} import main; sys.argv[1:] = {words!r}; main()"
    return WarmProcess("script", code, Path.cwd(), environment, **quiet)
