"""Two processes that record runs in one profile at the same time lose none of them."""

import multiprocessing
import os

import pytest
from tests.recordings import record
from tests.synthetic import chain, random_chains

from ampere import Profile
from ampere.budget.recording import Reading, RunRecorder
from ampere.core import Meter
from ampere.devices.simulated import SimulatedWorker
from ampere.storage.places import journal_path
from ampere.storage.recording import profile_from

pytestmark = pytest.mark.fault(36)
APPENDS = int(os.environ.get("AMPERE_TEST_APPENDS", "25"))  # 200 by hand


def record_runs(path, joules):
    recorder = RunRecorder(chain(3, 4), path, Meter(**SimulatedWorker("xavier").hello()["meter"]))
    for number in range(APPENDS):
        recorder.readings.clear()
        recorder.readings.extend([Reading(joules + number, 1.0, 40)])
        assert recorder.keep()


def test_nothing_is_lost(tmp_path, record_property):
    path = tmp_path / "p.json"
    record(path, random_chains(1, 3))
    fork = multiprocessing.get_context("fork")
    writers = [fork.Process(target=record_runs, args=(path, joules)) for joules in (1000, 2000)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(300)
    assert [writer.exitcode for writer in writers] == [0, 0]
    wanted = sorted([joules + number for joules in (1000, 2000) for number in range(APPENDS)])
    for profile in (Profile.load(path), profile_from(journal_path(path))):
        assert sorted(run.measurement.target[0].joules for run in profile.runs) == wanted
    record_property("figure", f"2 processes, {APPENDS} runs each: {len(wanted)} of {len(wanted)} kept")
