"""A counter that only root may read: one line with the file, the cause and remedies, and a code of its own."""

import ctypes
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.sysfs_tree import add_zone

pytestmark = pytest.mark.fault(5)
FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.fixture(name="there")
def a_machine_whose_counter_may_not_be_read():
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        counter = add_zone(root, "intel-rapl:0", "package-0", 12345)
        counter.chmod(0)
        root.chmod(0o755)
        yield root, counter


def without_privileges(root, *words, program=("-m", "ampere")):
    """Whoever owns the machine may read everything, unless that right is given away."""
    environment = {**os.environ, "AMPERE_SYSFS": str(root), "AMPERE_HOME": str(root), "COLUMNS": "300"}
    command = [sys.executable, *program, *words]
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


def test_whenever_a_command_prints_joules_it_is_said_and_not_silently_replaced(there):
    """Also with --json and --quiet; whoever asks for the model hears nothing."""
    root, counter = there
    command = ("estimate", "lenet5", "--profile", str(FIXTURES / "profile-format-2.json"), "--allow-other-device")
    ran = without_privileges(root, *command, "--json", "--quiet")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["joules_per_iteration"] > 0
    [line] = ran.stderr.strip().splitlines()
    assert line.startswith(f"joules are modelled, not measured: {counter} may be read by root only")
    asked_for = without_privileges(root, "devices", "--meter", "cpu-time")
    assert (asked_for.returncode, asked_for.stderr) == (0, "")


IN_PYTHON = """
import warnings, ampere
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(ampere.Budget(5).meter.name)
print(*(w.message for w in caught), sep="\\n")
"""


def test_a_budget_says_it_too(there):
    root, counter = there
    ran = without_privileges(root, program=("-c", IN_PYTHON))
    name, line = ran.stdout.splitlines()
    assert name == "cpu-time", ran.stderr
    assert line.startswith(f"joules are modelled, not measured: {counter} may be read by root only")
