"""This machine as a device: one worker, watched."""

import os
import signal
import sys
from pathlib import Path

import pytest

from ampere.core import Measurement, TrainingSetup
from ampere.core.errors import DeviceError, RuntimeMissingError, UsageError
from ampere.devices import LocalWorker, VariantDied, VariantFailed

WORKLOADS = Path(__file__).parent.parent / "worker" / "workloads.py"
QUICK = {"iterations": 2, "warmup": 1}
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
POSIX = pytest.mark.skipif(os.name != "posix", reason="asks for processes and interrupts itself by signals")


def workload(name):
    return {"factory": f"{WORKLOADS}:{name}"}


@pytest.fixture(scope="module")
def device():
    with LocalWorker() as device:
        yield device


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_block(device):
    block = device.block(workload("mlp"), TrainingSetup(optimizer="adam"), **QUICK)
    assert isinstance(block, Measurement)
    assert block.iterations == 2
    assert block.ratio() > 0
    assert isinstance(block.flags, tuple)


@pytest.mark.measured
def test_the_yardstick(device):
    assert 0 < device.yardstick(0.1).busy_seconds < 0.1


def test_the_identity_stays_and_names_nobody(device):
    before = device.identity()
    device.close()
    assert device.identity() == before
    assert os.uname().nodename not in str(before)
    assert set(before) == {
        "id",
        "machine_id",
        "cpu",
        "cores",
        "system",
        "machine",
        "release",
        "python",
        "torch",
        "runtimes",
    }


def test_errors_have_their_classes(device):
    with pytest.raises(VariantFailed, match="first line"):
        device.block(workload("sulking"), **QUICK)
    with pytest.raises(DeviceError, match="pairing"):
        device.block(workload("mlp"), pairing="hour")
    huge = {"factory": "torch.nn:Linear", "arguments": {"in_features": 10**7, "out_features": 10**6}}
    with pytest.raises(VariantDied) as caught:
        device.block(huge, **QUICK)
    assert caught.value.out_of_memory


@LINUX
def test_the_allocator_is_the_workers_own(monkeypatch):
    monkeypatch.setenv("MALLOC_TOP_PAD_", "1")
    for allocator, expected in (("tuned", b"MALLOC_TOP_PAD_=268435456"), ("system", None)):
        with LocalWorker(allocator=allocator) as device:
            device.hello()
            environment = Path(f"/proc/{device.worker_pid}/environ").read_bytes().split(b"\0")
        pads = [entry for entry in environment if entry.startswith(b"MALLOC_TOP_PAD_")]
        assert pads == ([expected] if expected else [])
    with pytest.raises(UsageError):
        LocalWorker(allocator="magic").hello()


@pytest.mark.alone  # threads that wait for each other take long where others train too
def test_more_threads_get_a_worker_of_their_own(device):
    device.hello()
    before = device.worker_pid
    for isolation in ("inline", "fork"):
        block = device.block(workload("mlp"), TrainingSetup(threads=2), isolation=isolation, **QUICK)
        assert block.ratio() > 0
        assert "not_isolated" not in block.flags
    assert device.worker_pid != before


@LINUX
@pytest.mark.alone
def test_the_worker_itself_never_starts_a_pool_of_threads(device):
    """A forked child would hang with it: yardsticks and blocks of several threads run in children only."""
    setup = TrainingSetup(threads=2)
    device.yardstick(0.01, threads=2)
    device.block(workload("mlp"), setup, isolation="inline", **QUICK)
    threads = len(list(Path(f"/proc/{device.worker_pid}/task").iterdir()))
    assert "not_isolated" not in device.block(workload("mlp"), setup, isolation="fork", **QUICK).flags
    assert len(list(Path(f"/proc/{device.worker_pid}/task").iterdir())) == threads


def test_a_missing_runtime(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with LocalWorker() as device, pytest.raises(RuntimeMissingError, match=r"pip install 'ampere-energy\[torch\]'"):
        device.block(workload("mlp"))


def test_a_python_that_is_not_there():
    with pytest.raises(DeviceError, match="cannot start"):
        LocalWorker(python="/no/such/python").hello()


def test_a_python_that_has_no_worker(tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho No module named ampere >&2\nexit 1\n")
    python.chmod(0o755)
    with pytest.raises(DeviceError, match="died twice: exit code 1; its last output: No module named ampere"):
        LocalWorker(python=str(python)).block(workload("mlp"))


@POSIX
def test_closing_leaves_no_process():
    device = LocalWorker()
    device.hello()
    pid = device.worker_pid
    device.close()
    assert not alive(pid)
    device.close()


@POSIX
def test_an_interrupt_ends_the_worker_at_once():
    with LocalWorker() as device:
        device.hello()
        pid = device.worker_pid
        previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        try:
            with pytest.raises(KeyboardInterrupt):
                device.block(workload("hanging"), **QUICK)
        finally:
            signal.signal(signal.SIGALRM, previous)
        assert not alive(pid)


def test_a_worker_that_gets_no_time_is_said_to_be_slow_and_not_dead():
    with LocalWorker(grace_seconds=1e-4) as device, pytest.raises(DeviceError) as problem:
        device.hello()
    assert str(problem.value) == (
        "the worker was started twice, and it did not answer in time: other work may take the processor there; end it, "
        "or try again later"
    )
