"""A counter that only root may read: one line with the file, the cause and remedies, and a code of its own."""

import ctypes
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.sysfs_tree import add_zone

pytestmark = pytest.mark.fault(5)


@pytest.fixture(name="there")
def a_machine_whose_counter_may_not_be_read():
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        counter = add_zone(root, "intel-rapl:0", "package-0", 12345)
        counter.chmod(0)
        root.chmod(0o755)
        yield root, counter


def without_privileges(root, *words):
    """Whoever owns the machine may read everything, unless that right is given away."""
    environment = {**os.environ, "AMPERE_SYSFS": str(root), "AMPERE_HOME": str(root), "COLUMNS": "300"}
    command = [sys.executable, "-m", "ampere", *words]
    give_away = _give_away if os.geteuid() == 0 else None
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=90, preexec_fn=give_away, check=False
    )


def _give_away():
    """PR_CAPBSET_DROP of CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, for what is started next."""
    system = ctypes.CDLL(None)
    for capability in (1, 2):
        system.prctl(24, capability, 0, 0, 0)


def test_asked_for_it_is_refused_in_one_line(there):
    root, counter = there
    ran = without_privileges(root, "devices", "--meter", "powercap")
    assert (ran.returncode, ran.stdout) == (9, "")
    assert len(ran.stderr.strip().splitlines()) == 1
    for words in (str(counter), "may be read by root only", "sudo chmod o+r", "--meter cpu-time"):
        assert words in ran.stderr


def test_listed_it_is_said_and_nothing_is_changed(there):
    root, counter = there
    ran = without_privileges(root, "devices")
    assert ran.returncode == 0, ran.stderr
    said = " ".join(ran.stdout.split())
    assert "powercap: cannot be used:" in said
    assert "modelled" in said
    assert counter.stat().st_mode & 0o777 == 0
