"""A worker that nobody asks costs next to nothing: at most 0.3 % of a core, also where a host keeps in touch."""

import time
from pathlib import Path

import pytest
from tests.sshd import command_of, descendants, server

from ampere.core import Layer, Network
from ampere.devices import LocalWorker
from ampere.devices.ssh import Address, SshWorker

LAYERS = {"layers": Network((Layer("linear", {"lead": (8,), "bias": True}, 16, 8),), 8).to_json()}
SHARE = 0.003
SECONDS = 3.0
BETWEEN_BEATS = 5.5  # so that a sign of life of the host, which comes every 5 s, is in it


def cpu_seconds(pids):
    """Of every thread, by the scheduler's own count: ticks are too coarse."""
    try:
        lines = [path.read_text() for pid in pids for path in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    except OSError:
        lines = []
    if not lines:
        pytest.skip("this system does not tell CPU time to the nanosecond (/proc/PID/schedstat)")
    return sum(int(line.split()[0]) for line in lines) * 1e-9


def idle_share(pids, seconds):
    time.sleep(0.5)  # what a runtime does after its last step
    before, began = cpu_seconds(pids), time.monotonic()
    time.sleep(seconds)
    return (cpu_seconds(pids) - before) / (time.monotonic() - began)


@pytest.mark.measured
def test_here():
    with LocalWorker() as device:
        device.block(LAYERS, iterations=2, warmup=1)
        assert idle_share([device.worker_pid, *descendants(device.worker_pid)], SECONDS) < SHARE


@pytest.mark.measured
def test_over_ssh_with_what_relays_to_it(tmp_path):
    with server(tmp_path) as there, SshWorker(Address.parse(there.spec.partition(":")[2])) as device:
        device.block(LAYERS, iterations=2, warmup=1)
        pids = [pid for pid in descendants(there.pid) if not command_of(pid).startswith("sshd")]
        assert len(pids) >= 2
        assert idle_share(pids, BETWEEN_BEATS) < SHARE
