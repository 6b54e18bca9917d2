"""A place that may not be written: one clear line with a remedy, and what is there can still be read."""

import subprocess
import sys
from pathlib import Path

import pytest

from ampere.core.errors import StorageError
from ampere.storage import Journal, Profile

pytestmark = pytest.mark.fault(16)

FIXTURE = Path(__file__).parents[1] / "fixtures" / "profile-format-2.json"

TRY_TO_WRITE = """
import os, sys
from pathlib import Path
from ampere.core.errors import StorageError
from ampere.storage import Journal, Profile
profile, folder = Profile.load(Path(sys.argv[1])), Path(sys.argv[2])
if sys.argv[3] == "unprivileged" and os.getuid() == 0:
    os.setuid(65534)
for action in (lambda: profile.save(folder / "p.json"), lambda: profile.save(folder / "new" / "p.json"),
               lambda: Journal(folder / "p.json.journal")):
    try:
        action()
    except StorageError as error:
        print(error)
    else:
        sys.exit("was allowed to write")
assert sys.argv[3] == "unprivileged" or Profile.load(folder / "p.json") == profile
"""


def refusals(command: list[str]) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_read_only_file_system(tmp_path, private_mounts):
    Profile.load(FIXTURE).save(tmp_path / "p.json")
    mount = f"mount --bind {tmp_path} {tmp_path} && mount -o remount,ro,bind {tmp_path}"
    lines = refusals(private_mounts(mount, [sys.executable, "-c", TRY_TO_WRITE, str(FIXTURE), str(tmp_path), "root"]))
    assert len(lines) == 3
    assert all("the file system is read-only: choose another place" in line for line in lines)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes for folders")
def test_a_folder_without_permission(tmp_path):
    folder = tmp_path / "closed"
    folder.mkdir()
    folder.chmod(0o500)
    lines = refusals([sys.executable, "-c", TRY_TO_WRITE, str(FIXTURE), str(folder), "unprivileged"])
    assert len(lines) == 3
    assert all("permission denied: choose another place" in line for line in lines)


@pytest.mark.parametrize("place", ["folder", "file/p.json", "x" * 300, "zero\0byte"])
def test_places_that_cannot_be(tmp_path, place):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    profile = Profile.load(FIXTURE)
    for action in (profile.save, Journal):
        with pytest.raises(StorageError, match=r"cannot write .+: ") as refusal:
            action(tmp_path / place)
        assert "\n" not in str(refusal.value)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder"]
