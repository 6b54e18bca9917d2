"""The memory limit of a container is read, and a variant that the system kills for its memory counts as too large."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plugins import bring_runtime
from tests.synthetic import chain

from ampere.core import TrainingSetup
from ampere.core.errors import WorkerError
from ampere.devices import LocalWorker, VariantDied
from ampere.profiling.experiment import Experiment
from ampere.profiling.strategies.strategy import MeasurementContext
from ampere.worker import memory
from ampere.worker.guards import in_child

pytestmark = pytest.mark.fault(30)

MB = 1_000_000
UNLIMITED = 9223372036854771712  # as version 1 says it
RUNTIME = """
import os, signal, time
from pathlib import Path
from ampere.core import Network
from ampere.runtimes import Description, Training

RUNTIME = Description("heavy_runtime", ("heavy",), "pip install heavy", frozenset({"conv", "linear"}))


class Heavy:
    def prepare(self, threads): ...
    def ready_to_fork(self, workload, threads): return True
    def yardstick(self): return Training(lambda: time.sleep(0.0001), lambda: 1.0, 1)

    def build(self, workload, setup):
        if Network.from_json(workload["layers"]).layers[0].channels_out > 16:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.yardstick()


create = Heavy
"""


def proc(root, *groups):
    """A /proc of a process in these groups, on a machine with 8 GB."""
    for file, text in {
        "self/cgroup": "\n".join(groups),
        "meminfo": "MemTotal: 9000000 kB\nMemAvailable: 8000000 kB",
        "vmstat": "pgfault 3",
    }.items():
        put(root / "proc" / file, text)
    return root / "proc", root / "cgroup"


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def version_2(folder, **files):
    """Files of a group: `max` is memory.max."""
    for name, text in {"current": 0, **files}.items():
        put(folder / f"memory.{name}", text)


def version_1(folder, limit=UNLIMITED, used=0, soft=UNLIMITED):
    put(folder / "memory.limit_in_bytes", limit)
    put(folder / "memory.usage_in_bytes", used)
    put(folder / "memory.soft_limit_in_bytes", soft)


def test_version_2_is_read_with_all_groups_around(tmp_path):
    where = proc(tmp_path, "0::/pod/box")
    put(where[1] / "cgroup.controllers", "memory")
    assert memory.available_bytes(*where) == 8_192_000_000
    version_2(where[1] / "pod/box", max="max", high="max")
    assert memory.available_bytes(*where) == 8_192_000_000
    version_2(where[1] / "pod", max=900 * MB, current=300 * MB, stat=f"anon 7\ninactive_file {100 * MB}")
    assert memory.available_bytes(*where) == 700 * MB
    version_2(where[1] / "pod/box", max=800 * MB, high=500 * MB, low=1, current=100 * MB)
    assert memory.available_bytes(*where) == 400 * MB
    version_2(where[1] / "pod/box", max=50 * MB, current=60 * MB)
    assert memory.available_bytes(*where) == 0


def test_version_1_is_read_where_the_path_is_the_hosts(tmp_path):
    where = proc(tmp_path, "9:name=systemd:/", "4:cpu,memory:/docker/0123", "0::/")
    version_1(where[1] / "memory", 600 * MB, 200 * MB, soft=10 * MB)
    put(where[1] / "memory/memory.stat", f"inactive_file 1\ntotal_inactive_file {50 * MB}")
    assert memory.available_bytes(*where) == 450 * MB
    version_1(where[1] / "memory/docker/0123")
    assert memory.available_bytes(*where) == 450 * MB
    version_1(where[1] / "memory/docker/0123", 300 * MB, 100 * MB)
    assert memory.available_bytes(*where) == 200 * MB


@settings(max_examples=40)
@given(st.text(), st.text(), st.text())
def test_whatever_the_files_hold_the_answer_is_a_number(tmp_path_factory, groups, limit, stat):
    where = proc(tmp_path_factory.mktemp("odd"), "0::/", "4:memory:/", groups.replace("\0", ""))
    put(where[1] / "cgroup.controllers", "memory")
    version_2(where[1], max=limit, stat=stat)
    version_1(where[1] / "memory", limit, stat)
    assert 0 <= memory.available_bytes(*where) <= 8_192_000_000
    assert memory.oom_kills(*where) == 0


@pytest.mark.skipif(not Path("/proc/self/cgroup").exists(), reason="this system has no control groups")
def test_the_groups_of_this_process_are_read():
    assert memory.groups() or not Path("/sys/fs/cgroup").is_dir()
    assert 0 < memory.available_bytes() <= 1024 * memory.field_of(Path("/proc/meminfo"), "MemTotal:")


@pytest.fixture
def container(tmp_path, monkeypatch):
    """A tree of control groups for a real process: 400 MB are left in it."""
    group = tmp_path / "fs/cgroup"
    put(group / "cgroup.controllers", "memory")
    version_2(group, max=500 * MB, current=100 * MB, events="oom 0\noom_kill 0")
    monkeypatch.setenv("AMPERE_SYSFS", str(tmp_path))
    return group


@pytest.mark.skipif(sys.platform != "linux", reason="limits of control groups are Linux's")
@pytest.mark.parametrize(("megabytes", "ends"), [(200, "fits"), (600, "MemoryError")])
def test_what_exceeds_the_limit_fails_at_once_instead_of_being_killed(container, megabytes, ends):
    code = f"from ampere.worker.memory import *; limit_memory(); bytearray({megabytes * MB}); print('fits')"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ends in ran.stdout + ran.stderr


@pytest.mark.parametrize("kills", [0, 1])
def test_a_sigkill_counts_as_out_of_memory_where_the_kernel_says_so(container, kills):
    def task():
        version_2(container, events=f"oom 0\noom_kill {kills}")
        os.kill(os.getpid(), signal.SIGKILL)

    version_2(container, max="max")
    with pytest.raises(WorkerError) as died:
        in_child(task)
    assert died.value.type == ("out_of_memory" if kills else "variant_died")


def test_and_where_the_process_had_taken_most_of_what_was_left(container):
    def task():
        held = b"x" * (250 * MB)
        os.kill(len(held) and os.getpid(), signal.SIGKILL)

    with pytest.raises(WorkerError) as died:
        in_child(task)
    assert died.value.type == "out_of_memory"


@pytest.mark.parametrize("isolation", ["inline", "fork"])
def test_larger_variants_are_not_proposed_again(monkeypatch, tmp_path, isolation, record_property):
    bring_runtime(monkeypatch, tmp_path, "heavy", RUNTIME)
    requested = []

    class Recorded(LocalWorker):
        def block(self, workload, setup, **how):
            requested.append(workload["layers"]["layers"][0]["channels"][1])
            return super().block(workload, setup, **{**how, "isolation": isolation})

    with Recorded() as worker:
        source, meter = None, worker.hello()["meter"]
        context = MeasurementContext(source, {"tuned": worker}, TrainingSetup("heavy"), meter, 1e-3, lambda seen: None)
        kept, refused = [], []
        for width in (8, 64, 32, 96, 12, 48, 16):
            network = chain(3, width)
            try:
                kept.append(context.observe(Experiment(network, {"layers": network.to_json()}, "network"), 1e-3))
            except VariantDied as died:
                refused.append((width, died.out_of_memory))
    assert requested == [8, 64, 32, 12, 16]
    assert refused == [(64, True), (32, True)]
    assert sum(found is not None for found in kept) == 3
    record_property("figure", f"{isolation}: 2 killed, 3 of 3 smaller ones kept, 0 of 2 larger ones tried again")
