"""A full disk stops a run cleanly: every acknowledged record is readable, the old profile is as it was.

The 1 MB disk is a real file system in a mount namespace of its own, which goes when the child process goes. Where
that is not allowed, a limit on the size of files stands in for it.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ampere.core.errors import StorageError
from ampere.storage import Journal, journal

pytestmark = pytest.mark.fault(16)

FIXTURE = Path(__file__).parents[1] / "fixtures" / "profile-format-2.json"

FILL = """
import json, resource, shutil, sys
from dataclasses import replace
from pathlib import Path
from ampere.core.errors import StorageError
from ampere.storage import Journal, Profile, observations_from, read_records, record_observation

fixture, folder, limited = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] == "limited"
old = folder / "p.json"
shutil.copy(fixture, old)
if limited:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))

def refusal(action):
    try:
        action()
    except StorageError as error:
        return str(error)

profile = Profile.load(old)
journal = Journal(folder / "p.json.journal")
acknowledged, message = 0, None
while message is None:
    message = refusal(lambda: record_observation(journal, profile.observations[acknowledged % 3]))
    acknowledged += message is None
again = refusal(lambda: journal.append({"pad": "x" * 5000}))
larger = replace(profile, fit={"pad": "x" * 1_500_000})
json.dump({
    "acknowledged": acknowledged,
    "message": message,
    "again": again,
    "readable": len(list(observations_from(journal))),
    "saving": refusal(lambda: larger.save(old)),
    "unchanged": old.read_bytes() == fixture.read_bytes(),
    "names": sorted(p.name for p in folder.iterdir()),
    "tail_is_whole": journal.path.read_bytes().endswith(b"\\n"),
    "reopening": refusal(lambda: (journal.close(), Journal(journal.path).close())),
}, sys.stdout)
"""


def checked(command: list[str]) -> dict[str, object]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["acknowledged"] > 100
    assert result["readable"] == result["acknowledged"]
    assert result["tail_is_whole"]
    assert result["again"]
    assert result["saving"]
    assert result["unchanged"]
    assert result["names"] == ["p.json", "p.json.journal"]
    return result


def test_a_full_file_system(tmp_path, private_mounts):
    command = [sys.executable, "-c", FILL, str(FIXTURE), str(tmp_path), "full"]
    result = checked(private_mounts(f"mount -t tmpfs -o size=1m tmpfs {tmp_path}", command))
    assert (
        result["message"] == f"cannot write {tmp_path}/p.json.journal: the disk is full: free some space and run again"
    )
    assert str(result["saving"]).startswith(f"cannot write {tmp_path}/p.json: the disk is full")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
def test_a_limit_on_the_size_of_files(tmp_path):
    result = checked([sys.executable, "-c", FILL, str(FIXTURE), str(tmp_path), "limited"])
    assert "larger than the system allows" in str(result["message"])


def test_a_short_write_is_taken_back(tmp_path, monkeypatch):
    """The system may write part of a line without an error: that part must not be glued to the next record."""
    with Journal(tmp_path / "j") as truth:
        truth.append({"n": 1})
        write = journal.os.write
        with monkeypatch.context() as fault:
            fault.setattr(journal.os, "write", lambda fd, line: write(fd, line[: len(line) // 3]))
            fault.setattr(journal.os, "ftruncate", refuse)
            with pytest.raises(StorageError, match="full"):
                truth.append({"n": 2})
        truth.append({"n": 3})
        assert [record["n"] for record in truth.records()] == [1, 3]


def refuse(*_: object) -> None:
    raise OSError(5, "Input/output error")


def test_the_disk_has_room_again(tmp_path, private_mounts):
    script = """
import sys
from pathlib import Path
from ampere.core.errors import StorageError
from ampere.storage import Journal
folder = Path(sys.argv[1])
(folder / "filler").write_bytes(b"x" * 900_000)
journal = Journal(folder / "j")
try:
    for n in range(1000):
        journal.append({"n": n, "pad": "x" * 1000})
except StorageError:
    (folder / "filler").unlink()
journal.append({"n": n})
assert [record["n"] for record in journal.records()] == list(range(n + 1))
"""
    command = [sys.executable, "-c", script, str(tmp_path)]
    command = private_mounts(f"mount -t tmpfs -o size=1m tmpfs {tmp_path}", command)
    subprocess.run(command, check=True, timeout=90)
