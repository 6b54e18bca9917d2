"""Stopped, killed, unplugged: what was measured is kept, and the same command goes on from there."""

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from tests.processes import STARTED, start_command

from ampere.cli.console import Display
from ampere.storage.recording import observations_from, profiling_seconds_from

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")


def journal_of(ampere):
    return next((ampere.home / "profiles").glob("*.journal"), None)


def measured(ampere):
    journal = journal_of(ampere)
    return len(list(observations_from(journal))) if journal else 0


def wait_until_measuring(ampere, process, count=2):
    deadline = time.monotonic() + 120
    while measured(ampere) < count:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def start(ampere, *words):
    """The command, left running, and a function that lists the workers that it started and that still run."""
    started = ampere.folder / "started"
    process = start_command([*words], ampere.folder, {**ampere._environment(), STARTED: str(started)})
    return process, lambda: [pid for pid in map(int, started.read_text().split()) if running(pid)]


def running(pid):
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_ctrl_c_keeps_what_was_measured_and_the_same_command_goes_on(ampere, refused):
    words = ["profile", "lenet5", "--quiet"]
    process, workers = start(ampere, *words, "--seconds", "60")
    wait_until_measuring(ampere, process)
    assert workers()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=90)
    kept = measured(ampere)
    assert process.returncode == 130
    assert err.decode().strip() == (
        f"ampere: stopped; what was measured is kept in {journal_of(ampere)}, the same command goes on from there"
    )
    assert out == b""
    assert not workers()
    spent = profiling_seconds_from(journal_of(ampere))
    again = ampere(*words, "--seconds", spent + 5, "--json")
    assert again.code == 0, again.err
    assert again.record["resumed"] is True
    assert measured(ampere) > kept


def test_a_killed_worker_is_replaced_and_the_run_ends_well(ampere):
    process, workers = start(ampere, "profile", "lenet5", "--seconds", "6", "--json")
    wait_until_measuring(ampere, process)
    os.kill(workers()[0], signal.SIGKILL)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert b'"expected_error"' in out
    assert b"Traceback" not in err


def test_a_reader_who_leaves_is_no_error(profiled):
    process = profiled.start("devices", "--json")
    process.stdout.close()
    assert process.wait(90) == 0
    assert process.stderr.read() == ""


def test_a_full_disk_behind_standard_output_is_one_line(profiled):
    import subprocess

    with open("/dev/full", "w") as full:
        environment = {**os.environ, "AMPERE_HOME": str(profiled.home)}
        ran = subprocess.run(
            [sys.executable, "-m", "ampere", "devices", "--json"], stdout=full, stderr=subprocess.PIPE, env=environment
        )
    assert ran.returncode == 7
    assert ran.stderr.decode().startswith("ampere: No space left on device: free some space")
    assert ran.stderr.count(b"\n") == 1


def test_ctrl_c_at_once_says_that_nothing_was_lost(ampere):
    process = start_command(["profile", "lenet5", "--quiet"], ampere.folder, ampere._environment())
    deadline = time.monotonic() + 90
    while journal_of(ampere) is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=90)
    assert process.returncode == 130
    assert err == b"ampere: stopped before anything was measured\n"


@pytest.fixture
def interruptible():
    """As a command is; what runs tests may have another handler."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_that_a_library_swallowed_is_raised_with_the_next_progress(interruptible):
    with Display(quiet=True) as display:
        shown = display.task("profiling")
        with contextlib.suppress(KeyboardInterrupt):  # as Python does in callbacks of its garbage collector
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            shown(1, 2, "")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
