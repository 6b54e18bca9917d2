"""Two processes that change one profile at the same time lose nothing of each other's."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ampere.core import TrainingSetup
from ampere.core.errors import BusyError
from ampere.storage import Journal, Profile, journal_path, observations_from, read_records
from ampere.storage.recording import record_observation

pytestmark = pytest.mark.fault(36)

FIXTURE = Path(__file__).parents[1] / "fixtures" / "profile-format-2.json"
APPENDS = 200

# Read, change and write under one lock, as every command does; whoever finds it taken tries again.
APPEND = """
import sys
from dataclasses import replace
from pathlib import Path
from ampere.core.errors import BusyError
from ampere.storage import Journal, Profile, journal_path

path, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
done = 0
while done < count:
    try:
        journal = Journal(journal_path(path))
    except BusyError:
        continue
    with journal:
        known = Profile.load(path)
        journal.append({"name": f"{name}-{done}"})
        replace(known, spaces=(*known.spaces, f"{name}-{done}")).save(path)
    done += 1
"""


def test_two_processes_append_200_times_each(tmp_path, record_property):
    memory = Path("/dev/shm")  # a disk would be waited for 1,600 times
    with TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as folder:
        _append_together(Path(folder) / "p.json", record_property)


def _append_together(path: Path, record_property: Callable[[str, object], None]) -> None:
    replace(Profile.load(FIXTURE), spaces=(), observations=()).save(path)
    both = [subprocess.Popen([sys.executable, "-c", APPEND, str(path), name, str(APPENDS)]) for name in ("a", "b")]
    assert [process.wait(timeout=120) for process in both] == [0, 0]
    wanted = {f"{name}-{n}" for name in ("a", "b") for n in range(APPENDS)}
    stored = {*Profile.load(path).spaces}, {record["name"] for record in read_records(journal_path(path))}
    record_property("figure", f"2 processes, {APPENDS} appends each, {2 * APPENDS - len(stored[0] & stored[1])} lost")
    assert stored == (wanted, wanted)


def test_a_profile_that_changed_before_the_lock_was_taken_is_read_again(tmp_path, monkeypatch):
    """A run that waits for the lock must not write back what it read before."""
    from ampere.devices import Device
    from ampere.models.loading import find_space
    from ampere.profiling import running
    from ampere.profiling.sources import SpaceSource
    from ampere.profiling.strategies.strategy import Goal

    path, setup = tmp_path / "p.json", TrainingSetup()
    source = lambda: SpaceSource(find_space("lenet5"))  # noqa: E731
    with Device("simulated:xavier") as device:
        running.make_profile(source, setup, Goal(0.5, 0.0), device, path=path)
        taken = Journal.__init__

        def after_another(journal: Journal, where: Path) -> None:
            monkeypatch.undo()
            known = Profile.load(path)
            replace(known, spaces=(*known.spaces, "another")).save(path)
            taken(journal, where)

        monkeypatch.setattr(Journal, "__init__", after_another)
        made = running.make_profile(source, setup, Goal(0.5, 0.0), device, path=path)
    assert "another" in made.profile.spaces
    assert "another" in Profile.load(path).spaces


def test_a_cleared_journal_is_the_file_that_others_wait_for(tmp_path):
    path, first = tmp_path / "j", Profile.load(FIXTURE).observations[0]
    with Journal(path) as journal:
        record_observation(journal, first)
        before = path.stat().st_ino
        journal.clear()
        with pytest.raises(BusyError):
            Journal(path)
    assert path.stat().st_ino == before
    assert list(observations_from(path)) == []
    with Journal(path) as journal:
        record_observation(journal, first)
    assert list(observations_from(path)) == [first]
