"""How many threads a training loop would use on a machine, and the processes that have them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sshd import descendants

from ampere.core import Layer, Network
from ampere.core.errors import WorkerError
from ampere.core.protocol import OWN_THREADS_VARIABLE, THREAD_VARIABLES
from ampere.devices import LocalWorker
from ampere.devices.environment import worker_environment
from ampere.worker.block import MOST_BLOCKS
from ampere.worker.guards import CAN_FORK, Helper
from ampere.worker.machine import default_threads, named_threads
from ampere.worker.requests import read_request

LINUX = pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="asks Linux which processors it may use")


@pytest.fixture(name="processors")
def processors_of_a_machine(tmp_path, monkeypatch):
    def processors(cores, allowed):
        """`cores` has the package and the core of each logical processor; None where the system does not say."""
        for number, place in enumerate(cores):
            folder = tmp_path / "sys/devices/system/cpu" / f"cpu{number}" / "topology"
            folder.mkdir(parents=True)
            if place:
                (folder / "physical_package_id").write_text(f"{place[0]}\n")
                (folder / "core_id").write_text(f"{place[1]}\n")
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: allowed)
        return default_threads(str(tmp_path))

    return processors


@LINUX
def test_two_logical_processors_of_one_core_count_once(processors):
    assert processors([(0, 0), (0, 1), (0, 0), (0, 1)], {0, 1, 2, 3}) == 2


@LINUX
def test_cores_of_two_packages_have_equal_numbers(processors):
    assert processors([(0, 0), (0, 1), (1, 0), (1, 1)], {0, 1, 2, 3}) == 4


@LINUX
def test_only_processors_that_the_process_may_use_count(processors):
    assert processors([(0, 0), (0, 1), (0, 2), (0, 3)], {1, 3}) == 2


@LINUX
def test_processors_of_which_nothing_is_said_count_each(processors):
    assert processors([None, None, None], {0, 1, 2}) == 3


CODE = "import torch, ampere.worker.machine as here; print(torch.get_num_threads(), here.default_threads())"


def test_it_is_pytorchs_own_number():
    """Asked in a process of its own: the tests have set theirs to one."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    said = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True)
    theirs, ours = said.stdout.split()
    assert theirs == ours


@pytest.mark.parametrize(
    ("variables", "number"),
    [
        ({}, None),
        ({"OMP_NUM_THREADS": "3"}, 3),
        ({"MKL_NUM_THREADS": "2"}, 2),
        ({"OMP_NUM_THREADS": "4,2", "MKL_NUM_THREADS": "8"}, 4),
        ({"OMP_NUM_THREADS": "many"}, None),
        ({"OMP_NUM_THREADS": "0"}, None),
    ],
)
def test_the_users_environment_comes_first(monkeypatch, variables, number):
    """Whether the worker was started by the user, or by a host that has set its variables since."""
    for name in (*THREAD_VARIABLES, OWN_THREADS_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert named_threads() == number
    for name, value in worker_environment(variables, "tuned", 1).items():
        monkeypatch.setenv(name, value)
    assert os.environ["OMP_NUM_THREADS"] == "1"
    assert named_threads() == number


FORK = pytest.mark.skipif(not CAN_FORK, reason="this system cannot fork")


def helped(request):
    if request["do"] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if request["do"] == "fail":
        raise ValueError("no such layer")
    return {"pid": os.getpid()}


@FORK
def test_a_helper_stays_for_one_task_after_another():
    helper = Helper(helped)
    first, second = helper.result({"do": "work"}), helper.result({"do": "work"})
    assert first == second
    assert first["pid"] != os.getpid()
    with pytest.raises(WorkerError, match="no such layer") as failed:
        helper.result({"do": "fail"})
    assert failed.value.type == "variant_failed"
    assert helper.result({"do": "work"}) == first
    helper.close()
    assert os.waitpid(first["pid"], 0) == (first["pid"], 0)  # it has ended by itself


@FORK
def test_a_helper_can_be_ended_at_once():
    helper = Helper(helped)
    child = helper.result({"do": "work"})["pid"]
    assert helper.tasks == 1
    helper.end()
    assert not helper.alive
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


@FORK
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="this system does not tell which processes are whose")
def test_what_trains_is_a_child_that_is_renewed_after_some_blocks():
    """Else steps take longer the more networks a profile has trained (docs/decisions/0063)."""
    layers = {"layers": Network((Layer("linear", {"lead": (8,), "bias": True}, 16, 8),), 8).to_json()}
    with LocalWorker() as device:
        trained = []
        for _ in range(MOST_BLOCKS + 1):
            device.block(layers, iterations=2, warmup=1)
            trained += descendants(device.worker_pid)
    assert len(trained) == MOST_BLOCKS + 1
    assert len(set(trained[:MOST_BLOCKS])) == 1
    assert trained[-1] not in trained[:MOST_BLOCKS]


@FORK
def test_a_task_that_ends_the_helper_ends_nothing_else():
    helper = Helper(helped)
    with pytest.raises(WorkerError, match="was ended by SIGKILL") as died:
        helper.result({"do": "die"})
    assert died.value.type == "variant_died"
    assert not helper.alive


def test_no_threads_are_refused():
    with pytest.raises(WorkerError, match="threads is 0"):
        read_request(b'{"do": "yardstick", "threads": 0}')
