"""A test of a measurement that fails is repeated; all others are not, and what is wrong fails each time."""

import re
import subprocess
import sys
from pathlib import Path

TESTS = """
import pytest

runs = []

@pytest.fixture(scope="module")
def measured():
    return len(runs)

@pytest.mark.alone
def test_disturbed_once(measured, record_property):
    runs.append(measured)
    record_property("round", len(runs))
    assert measured == 1  # of a fixture that is set up again

@pytest.mark.measured
def test_undisturbed(measured):
    assert measured == 1

def test_quick():
    runs.append("quick")
    assert runs.count("quick") == 2

@pytest.mark.measured
def test_broken():
    runs.append("broken")
    assert False, f"tried {runs.count('broken')}"

@pytest.mark.alone
def test_broken_too():
    runs.append("too")
    assert False, f"tried {runs.count('too')}"
"""


def test_what_is_repeated(tmp_path):
    (tmp_path / "test_some.py").write_text(TESTS)
    hurry = "from tests import rounds; rounds.PAUSE_SECONDS, rounds.MOST_IN_VAIN = 0, 1"
    (tmp_path / "conftest.py").write_text(hurry)
    options = ["-p", "tests.rounds", "-o", "markers=alone", "-o", "addopts=", "-o", "pythonpath=", "--tb=line", "-rN"]
    command = [sys.executable, "-m", "pytest", *options, "--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True)
    assert "passed in attempt 2: test_some.py::test_disturbed_once" in done.stdout, done.stdout
    assert "test_undisturbed" not in done.stdout
    assert "3 failed, 2 passed" in done.stdout
    assert [*dict.fromkeys(re.findall(r"tried (\d)", done.stdout))] == ["3", "1"]  # after one in vain, none is repeated
