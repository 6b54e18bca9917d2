"""The branches of other operating systems, run here: Windows has no process groups, fork or flock, macOS no /proc."""

import errno
import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from tests.synthetic import chain

from ampere.core.processes import end_group, how_it_ended, own_group, python_program
from ampere.devices import LocalWorker
from ampere.devices.transport import WorkerProcess
from ampere.storage import locks

pytestmark = [
    pytest.mark.fault(35),
    pytest.mark.skipif(os.name != "posix", reason="imitates other systems on a POSIX one"),
]

# What Windows and macOS lack is taken away after PyTorch is imported, which was built for this system.
FOREIGN = """
import builtins, io, os, signal, sys, time
import torch
for module, names in ((os, "fork killpg getpgrp getpgid setsid getloadavg sched_getaffinity sched_setaffinity"),
                      (signal, "SIGKILL SIGHUP SIGSTOP"), (time, "CLOCK_BOOTTIME clock_gettime")):
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
sys.modules.update(dict.fromkeys(("resource", "fcntl", "pwd", "termios")))
real = builtins.open
def open_elsewhere(file, *given, **named):
    if str(file).startswith(("/proc", "/sys")):
        raise FileNotFoundError(2, "No such file or directory", str(file))
    return real(file, *given, **named)
builtins.open = io.open = open_elsewhere
"""
TASKKILL = """#!/bin/sh
echo "$@" >> "$0.log"
pkill -KILL -P "$4"; kill -KILL "$4"
"""


class ForeignWorker(LocalWorker):
    """This machine with a worker whose system lacks what others lack."""

    def __init__(self):
        super().__init__()
        [*python, program] = python_program("ampere.worker.__main__")
        self._command = (*python, FOREIGN + program)


@pytest.fixture
def windows(tmp_path, monkeypatch):
    """No process groups, and a `taskkill` that ends a process with its children."""
    program = tmp_path / "bin" / "taskkill"
    program.parent.mkdir()
    program.write_text(TASKKILL)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delattr(os, "killpg")
    return program.with_suffix(".log")


def test_a_worker_of_such_a_system_measures(windows, record_property):
    pytest.importorskip("torch")
    with ForeignWorker() as device:
        assert device.hello()["cores"] >= 1
        block = device.block({"layers": chain(3, 8, 8).to_json()}, iterations=2, warmup=1, isolation="fork")
        assert "not_isolated" in block.flags
        process = device._worker._process
    assert process.returncode == 0
    record_property("figure", "a worker without fork, groups, resource, /proc and /sys measures and is closed")


def test_a_hanging_worker_is_ended_with_its_children(windows, tmp_path):
    hanging = "import subprocess, sys, time; subprocess.Popen(['sleep', '600']); print(flush=True); time.sleep(600)"
    process = WorkerProcess([sys.executable, "-c", hanging], os.environ)
    process.patience_seconds = 0.2
    time.sleep(0.3)
    process.close()
    assert windows.read_text().split() == ["/F", "/T", "/PID", str(process.pid)]
    assert not process.alive


def test_without_taskkill_the_worker_itself_is_ended(monkeypatch):
    monkeypatch.delattr(os, "killpg")
    assert own_group() == {"creationflags": 0}
    process = subprocess.Popen(["sleep", "600"])
    end_group(process)
    assert process.returncode == -9


@pytest.mark.parametrize(
    ("code", "said"),
    [(-9, "ended by SIGKILL"), (-40, "ended by signal 40"), (3, "exit code 3")],
)
def test_any_end_has_words(code, said):
    assert how_it_ended(code) == said


def test_an_instruction_that_a_virtual_machine_only_announces_has_a_remedy():
    assert re.search(r"SIGILL, .* try with ONEDNN_MAX_CPU_ISA=", how_it_ended(-signal.SIGILL))


def test_locks_of_windows(tmp_path, monkeypatch):
    """Its own calls, imitated with the locks of this system; they, too, refuse a second holder."""
    here = locks.try_lock
    fake = SimpleNamespace(LK_NBLCK=2)

    def locking(fd, mode, length):
        assert (mode, length) == (2, 1)
        assert os.lseek(fd, 0, os.SEEK_CUR) == foreign.FAR_BEYOND_THE_END
        if not here(fd):
            raise OSError(errno.EACCES, "Permission denied")

    fake.locking = locking
    monkeypatch.setitem(sys.modules, "msvcrt", fake)
    monkeypatch.setattr(sys, "platform", "win32")
    spec = importlib.util.spec_from_file_location("windows_locks", locks.__file__)
    foreign = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(foreign)
    monkeypatch.undo()
    fds = [os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT) for _ in range(2)]
    assert foreign.lock(fds[0], 0.0)
    assert not foreign.lock(fds[1], 0.05)
    os.close(fds[0])
    assert foreign.lock(fds[1], 0.0)
    os.close(fds[1])
