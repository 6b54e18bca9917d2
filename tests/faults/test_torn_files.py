"""Whatever Ampere writes is written beside and renamed: a write that fails leaves the old file, byte for byte."""

import ast
import os
import stat
import sys
import zlib
from io import BytesIO
from pathlib import Path

import pytest

from ampere.core.errors import ProfileError, StorageError
from ampere.storage import Journal, read_records
from ampere.storage import files as strict_json
from ampere.storage import journal as journals
from ampere.storage.files import write_whole

pytestmark = pytest.mark.fault(34)

SOURCE = Path(strict_json.__file__).parents[1]
INTACT = (b'{"n":1,"n":2}', b'{"n":1e999}', b'{"n":%b}' % (b"9" * 40), b"[" * 40 + b"]" * 40, b'{"n":"\xc3\xa9"}')


def line(text: bytes) -> bytes:
    return b"%08x %b\n" % (zlib.crc32(text), text)


@pytest.mark.parametrize("text", INTACT)
@pytest.mark.parametrize("last", [True, False])
def test_a_line_with_a_right_checksum_is_never_cut(tmp_path, text, last):
    """Another Ampere may have written what this one's strict reader refuses."""
    path = tmp_path / "j"
    with Journal(path) as journal:
        journal.append({"n": 0})
    with path.open("ab") as file:
        file.write(line(text) + (b"" if last else line(b'{"n":3}')))
    before = path.read_bytes()
    with Journal(path) as journal:
        assert (journal.cut_bytes, journal.damaged) == (0, 1)
        journal.append({"n": 4})
    assert path.read_bytes().startswith(before)
    assert [record["n"] for record in read_records(path)] == ([0, 4] if last else [0, 3, 4])


def test_a_journal_too_large_to_read_is_refused_and_not_cut(tmp_path, monkeypatch):
    path = tmp_path / "j"
    with Journal(path) as journal:
        journal.append({"n": [0] * 100})
    before = path.read_bytes()
    for limit in ("LONGEST", "MOST_VALUES"):
        with monkeypatch.context() as patch:
            patch.setattr(journals, limit, 50)
            with pytest.raises(ProfileError, match="move it away"):
                Journal(path)
    assert path.read_bytes() == before


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    import resource
    import signal

    path = tmp_path / "model.safetensors"
    write_whole(path, b"old")
    pid = os.fork()
    if not pid:  # a process of its own, whose files may not grow
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        try:
            write_whole(path, b"x" * 100_000)
        except StorageError:
            os._exit(7)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["model.safetensors"]


def test_permissions_links_and_devices_stay(tmp_path):
    path = tmp_path / "a" / "report.html"
    write_whole(path, "é")
    path.chmod(0o600)
    link = tmp_path / "link"
    link.symlink_to(path)
    write_whole(link, "new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode), link.is_symlink()) == ("new", 0o600, True)
    if os.name != "nt":
        write_whole(Path(os.devnull), "gone")
        assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


def test_a_picture_that_cannot_be_drawn_leaves_the_old_one(tmp_path):
    from ampere.reporting.plotting import save_figure

    class HalfDrawn:
        def savefig(self, file: BytesIO, format: str) -> None:
            file.write(b"half")
            raise ValueError(f"Format {format!r} is not supported")

    path = tmp_path / "p.png"
    path.write_bytes(b"old")
    with pytest.raises(StorageError, match="not supported"):
        save_figure(HalfDrawn(), path)
    assert path.read_bytes() == b"old"


# Where a file is opened to write: the helper itself, /proc, and a fresh folder on a device.
ALLOWED = {"storage/files.py", "worker/memory.py", "devices/bootstrap.py"}
WRITERS = {"write_text", "write_bytes", "savefig", "save_file"}


def test_nothing_else_writes_files():
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and _writes(node):
                found.add(path.relative_to(SOURCE).as_posix())
    assert found <= ALLOWED | {"reporting/plotting.py"}  # which draws into memory


def _writes(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    modes = [a.value for a in (*call.args, *(k.value for k in call.keywords)) if isinstance(a, ast.Constant)]
    return name in WRITERS or (name == "open" and any(m in ("w", "wb", "x", "xb", "a", "ab", "w+") for m in modes))
