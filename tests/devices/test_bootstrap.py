"""What receives the worker on a device: it runs, it ends with the host or its silence, and nothing remains."""

import ast
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from ampere.devices.bootstrap import CUT_SHORT, NO_FOLDER, TOO_OLD
from ampere.devices.bundle import bootstrap_program, bundle

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")

HELLO = b'{"do": "hello", "id": 1}\n'


@contextmanager
def arriving(folder, silence_seconds=30.0, program=None, size=None):
    order = {"size": size or len(bundle()), "silence_seconds": silence_seconds, "environment": {}, "without": []}
    run = [sys.executable, "-c", program or bootstrap_program(), json.dumps(order)]
    environment = {**os.environ, "TMPDIR": str(folder)}
    with subprocess.Popen(run, stdin=-1, stdout=-1, stderr=-1, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def handshake(process):
    process.stdin.write(bundle() + b"\n\n" + HELLO[:9])
    process.stdin.flush()
    process.stdin.write(HELLO[9:] + b"\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def worker_of(process):
    return int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text())


def gone(pid):
    return not Path(f"/proc/{pid}").exists()


def test_requests_reach_the_worker_and_empty_lines_do_not(tmp_path):
    with arriving(tmp_path) as process:
        assert handshake(process)["result"]["protocol"] == 3
        assert len(list(tmp_path.iterdir())) == 1
        process.stdin.close()
        assert process.wait(30) == 0
        assert process.stdout.read() == b""
    assert list(tmp_path.iterdir()) == []


def test_a_silent_host_is_given_up(tmp_path):
    with arriving(tmp_path, silence_seconds=2.0) as process:
        handshake(process)
        worker = worker_of(process)
        for _ in range(5):
            time.sleep(0.5)
            process.stdin.write(b"\n")
            process.stdin.flush()
        assert process.poll() is None
        assert process.wait(30) == 0
    assert gone(worker)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_both(tmp_path, number):
    with arriving(tmp_path) as process:
        handshake(process)
        worker = worker_of(process)
        process.send_signal(number)
        assert process.wait(30) == 128 + number
    assert gone(worker)
    assert list(tmp_path.iterdir()) == []


def test_a_killed_worker_is_reported_at_once(tmp_path):
    with arriving(tmp_path) as process:
        handshake(process)
        os.kill(worker_of(process), signal.SIGKILL)
        assert process.wait(30) == 128 + signal.SIGKILL
        assert process.stderr.read() == b"ended by SIGKILL\n"
    assert list(tmp_path.iterdir()) == []


def test_a_worker_that_ignores_its_hosts_end_is_ended(tmp_path):
    with arriving(tmp_path) as process:
        handshake(process)
        worker = worker_of(process)
        os.kill(worker, signal.SIGSTOP)
        time.sleep(0.2)
        assert process.poll() is None
        process.stdin.close()
        assert process.wait(30) == 128 + signal.SIGKILL
    assert gone(worker)
    assert list(tmp_path.iterdir()) == []


def test_half_a_bundle_is_not_run(tmp_path):
    with arriving(tmp_path) as process:
        process.stdin.write(bundle()[:1000])
        process.stdin.close()
        assert process.wait(30) == CUT_SHORT
    assert list(tmp_path.iterdir()) == []


def test_a_python_that_is_too_old_says_so(tmp_path):
    as_if = "import sys; sys.version_info = (3, 7, 5); sys.version = '3.7.5 (old)'\n" + bootstrap_program()
    with arriving(tmp_path, program=as_if) as process:
        assert process.wait(30) == TOO_OLD
        assert process.stderr.read() == b"Python 3.7.5\n"
    ast.parse(bootstrap_program(), feature_version=(3, 5))


def test_no_place_to_write(tmp_path):
    nowhere = (
        "import tempfile\ndef none(prefix): raise OSError('No space left')\ntempfile.mkdtemp = none\n"
        + bootstrap_program()
    )
    with arriving(tmp_path, program=nowhere) as process:
        assert process.wait(30) == NO_FOLDER
        assert process.stderr.read() == b"No space left\n"
