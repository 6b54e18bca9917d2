"""A lock ends with its holder, however that ends; a living holder is named."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.processes import start_script

from ampere.core.errors import BusyError
from ampere.storage import Journal, read_records

pytestmark = pytest.mark.fault(2)

HOLDER = """
import os, sys, time
from pathlib import Path
from ampere.storage import Journal
journal = Journal(Path(sys.argv[1]))
journal.append({"by": os.getpid()})
os.write(1, b"held\\n")
time.sleep(60)
"""


def holding(path: Path) -> Any:
    child = start_script(HOLDER, str(path))
    assert child.stdout.readline() == b"held\n"
    return child


def test_a_killed_holder_leaves_no_lock(tmp_path):
    path = tmp_path / "p.json.journal"
    for _ in range(50):
        child = holding(path)
        child.kill()
        Journal(path).close()
        child.communicate()
    assert len(list(read_records(path))) == 50


def test_a_second_writer_is_refused_and_the_holder_named(tmp_path):
    path = tmp_path / "p.json.journal"
    child = holding(path)
    try:
        with pytest.raises(BusyError, match=rf"in use by process {child.pid}\b"):
            Journal(path)
    finally:
        child.kill()
        child.communicate()
    Journal(path).close()


def test_readers_need_no_lock(tmp_path):
    path = tmp_path / "p.json.journal"
    with Journal(path) as journal:
        journal.append({"n": 1})
        assert list(read_records(path)) == [{"n": 1}]


def test_the_same_process_is_refused_too(tmp_path):
    with (
        Journal(tmp_path / "j"),
        pytest.raises(BusyError, match=str(os.getpid())),
    ):
        Journal(tmp_path / "j")


def test_a_child_of_the_holder_does_not_keep_the_lock(tmp_path):
    journal = Journal(tmp_path / "j")
    worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        journal.close()
        Journal(tmp_path / "j").close()
    finally:
        worker.kill()
        worker.wait()
