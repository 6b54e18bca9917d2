"""A variant that takes its worker with it costs that variant only."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ampere.devices import LocalWorker, VariantDied

pytestmark = [
    pytest.mark.fault(12),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="kills by signals, and looks into /proc"),
]

WORKLOADS = Path(__file__).parent.parent / "worker" / "workloads.py"
QUICK = {"iterations": 3, "warmup": 1}
KILLS = 15


def workload(name):
    return {"factory": f"{WORKLOADS}:{name}"}


def test_the_device_goes_on_when_its_worker_is_killed_at_random_times():
    rng = random.Random(0)
    with LocalWorker() as device:
        for _ in range(KILLS):
            device.hello()
            timer = threading.Timer(rng.uniform(0, 0.15), os.kill, (device.worker_pid, signal.SIGKILL))
            timer.start()
            device.yardstick(0.05) if rng.random() < 0.2 else device.hello()
            timer.join()
        assert device.block(workload("mlp"), **QUICK).iterations == 3
        assert device.restarts >= KILLS - 1


@pytest.mark.parametrize("isolation", ["inline", "fork"])
def test_one_variant_in_twenty_crashes_and_nineteen_are_kept(isolation):
    kept, lost = [], []
    with LocalWorker() as device:
        for number in range(20):
            name = "segfault" if number == 7 else "mlp"
            try:
                kept.append(device.block(workload(name), isolation=isolation, **QUICK))
            except VariantDied as problem:
                lost.append(str(problem))
    assert len(kept) == 19
    assert len(lost) == 1
    assert "SIGSEGV" in lost[0]


@pytest.mark.parametrize("isolation", ["inline", "fork"])
def test_a_hanging_variant_is_ended_by_its_limit(isolation):
    with LocalWorker(grace_seconds=0.5) as device:
        device.block(workload("mlp"), **QUICK)
        with pytest.raises(VariantDied, match="in time"):
            device.block(workload("hanging"), seconds_limit=0.1, isolation=isolation, **QUICK)
        assert device.block(workload("mlp"), **QUICK).iterations == 3


def test_a_host_that_is_killed_leaves_no_worker():
    code = (
        "from ampere.devices import LocalWorker\n"
        "device = LocalWorker(); device.hello(); print(device.worker_pid, flush=True)\n"
        "import time; time.sleep(60)\n"
    )
    host = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    worker = int(host.stdout.readline())
    host.kill()
    host.communicate()
    deadline = time.monotonic() + 30
    while Path(f"/proc/{worker}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{worker}").exists()
