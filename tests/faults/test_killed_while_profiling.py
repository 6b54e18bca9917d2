"""kill -9 at any moment: what was acknowledged is there, the rest of the run goes on, at most one step is repeated."""

import random
import shutil
import time
from pathlib import Path

import pytest
from tests.processes import start_script

from ampere.storage import (
    Header,
    Journal,
    Profile,
    observations_from,
    profile_from,
    read_records,
    record_header,
    record_observation,
)

pytestmark = pytest.mark.fault(1)

FIXTURE = Path(__file__).parents[1] / "fixtures" / "profile-format-2.json"
REAL_KILLS, TRUNCATIONS = 25, 175

PROFILER = """
import os, random, sys
from pathlib import Path
from ampere.storage import Journal
with Journal(Path(sys.argv[1])) as journal:
    done = sum(1 for _ in journal.records())
    while True:
        journal.append({"n": done, "pad": "x" * random.randrange(3_000)})
        os.write(1, b"%d\\n" % done)
        done += 1
"""

SAVER = """
import os, sys
from dataclasses import replace
from pathlib import Path
from ampere.storage import Profile
path = Path(sys.argv[1])
profile = Profile.load(path)
while True:
    profile = replace(profile, profiling_seconds=profile.profiling_seconds + 1, fit={"pad": "x" * 500_000})
    profile.save(path)
    os.write(1, b"%d\\n" % profile.profiling_seconds)
"""


def acknowledged_until_killed(script: str, path: Path, seconds: float) -> list[int]:
    """Runs the script for a while after its first acknowledgement, kills it, and returns all that it acknowledged."""
    child = start_script(script, str(path))
    first = child.stdout.readline()
    time.sleep(seconds)
    child.kill()
    rest = child.stdout.read()
    child.wait()
    return [int(line) for line in (first + rest).split()]


def numbers(path: Path) -> list[int]:
    return [record["n"] for record in read_records(path)]


def test_real_kills_lose_nothing_acknowledged(tmp_path):
    path, moment = tmp_path / "p.json.journal", random.Random(1)
    for _ in range(REAL_KILLS):
        before = numbers(path) if path.exists() else []
        acknowledged = acknowledged_until_killed(PROFILER, path, moment.uniform(0, 0.1))
        now = numbers(path)
        assert now == list(range(len(now)))
        assert now[: len(before)] == before
        assert set(acknowledged) <= set(now)
        assert len(now) - len(before) - len(acknowledged) in (0, 1)
    append_ten(path)
    assert len(list(read_records(path))) == len(now) + 10


def test_cut_at_any_byte_loses_only_the_torn_record(tmp_path):
    observations = Profile.load(FIXTURE).observations * 10
    whole, ends = tmp_path / "whole", []
    with Journal(whole) as journal:
        for observation in observations:
            record_observation(journal, observation)
            ends.append(whole.stat().st_size)
    moment, copy = random.Random(2), tmp_path / "copy"
    for cut in [0, 1, ends[0] - 1, ends[0], *(moment.randrange(ends[-1]) for _ in range(TRUNCATIONS - 4))]:
        shutil.copy(whole, copy)
        with open(copy, "r+b") as file:
            file.truncate(cut)
        acknowledged = sum(end <= cut for end in ends)
        append_ten(copy)
        kept = list(observations_from(copy))
        assert tuple(kept) == observations[: len(kept)]
        assert len(kept) - acknowledged in (0, 1)
        assert len(list(read_records(copy))) == len(kept) + 10


def test_a_run_goes_on_from_the_journal_alone(tmp_path):
    path, profile = tmp_path / "p.json.journal", Profile.load(FIXTURE)
    with Journal(path) as journal:
        record_header(journal, Header(profile.device, profile.setup, profile.meter, profile.yardstick_seconds))
        for seconds, observation in enumerate(profile.observations, start=1):
            record_observation(journal, observation, seconds)
    with open(path, "ab") as file:
        file.write(b'deadbeef {"observation":{"lay')
    resumed = profile_from(path)
    assert resumed.observations == profile.observations
    assert resumed.profiling_seconds == len(profile.observations)
    assert (resumed.device, resumed.setup, resumed.meter) == (profile.device, profile.setup, profile.meter)


def test_killed_while_saving_leaves_a_whole_profile(tmp_path):
    path, moment = tmp_path / "p.json", random.Random(3)
    shutil.copy(FIXTURE, path)
    for _ in range(8):
        acknowledged = acknowledged_until_killed(SAVER, path, moment.uniform(0, 0.05))
        assert Profile.load(path).profiling_seconds >= acknowledged[-1]


def append_ten(path: Path) -> None:
    with Journal(path) as journal:
        for n in range(10):
            journal.append({"later": n})
