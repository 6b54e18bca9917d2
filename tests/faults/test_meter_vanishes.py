"""A counter that disappears in the middle of profiling: a saved stop, and the run goes on where it stopped."""

import os
import time

import pytest
from tests.processes import start_command
from tests.sysfs_tree import Machine, add_zone, put

pytestmark = pytest.mark.fault(3)


def test_what_was_measured_is_kept_and_continued(tmp_path):
    counter, gone = add_zone(tmp_path / "sys", "intel-rapl:0", "package-0"), []

    def show(joules, watts):
        if not gone:
            put(counter, int(1e6 * joules))

    journal = tmp_path / "p.json.journal"
    with Machine(show, idle=6.0, busy=0.0):
        run = profiling(tmp_path, 60)
        deadline = time.monotonic() + 50
        while lines_in(journal) < 4 and time.monotonic() < deadline:
            time.sleep(0.05)
        gone.append(True)
        time.sleep(0.05)
        counter.unlink()
        _, said = run.communicate(timeout=90)
        assert run.returncode == 9, said
        assert b"energy_uj cannot be read" in said
        kept = journal.read_bytes()
        assert kept.count(b"\n") >= 4
        gone.clear()
        again = profiling(tmp_path, 4)
        _, said = again.communicate(timeout=90)
    assert again.returncode == 0, said
    assert journal.read_bytes().startswith(kept)


def lines_in(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


def profiling(folder, seconds):
    words = ("profile", "lenet5", "--meter", "powercap", "--seconds", str(seconds), "--out", str(folder / "p.json"))
    environment = {**os.environ, "AMPERE_SYSFS": str(folder / "sys"), "AMPERE_HOME": str(folder)}
    return start_command([*words, "--quiet"], folder, environment)
