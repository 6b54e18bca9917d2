"""The journal: an append-only file with one writer, in which a record counts once it is on the disk."""

import errno
import os
import re
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple

from ampere.core.errors import BusyError, ProfileError
from ampere.storage import files as strict_json

from .files import open_to_read, storing, sync_folder

# The lines of a journal: CRC-32 of a JSON text, a space, the text. A line counts if its checksum is right.

LONGEST = 32_000_000  # bytes


class Line(NamedTuple):
    end: int  # offset of the byte after it
    value: Any  # None if damaged
    terminated: bool


def encoded(value: Any) -> bytes:
    text = strict_json.dumps(value).encode("ascii")
    if len(text) + 10 > LONGEST:
        raise ValueError(f"it is longer than {LONGEST / 1e6:.0f} MB")
    return b"%08x %b\n" % (zlib.crc32(text), text)


def decoded(raw: bytes) -> Any:
    seal, _, text = raw.removesuffix(b"\n").partition(b" ")
    if seal != b"%08x" % zlib.crc32(text):
        return None
    try:
        return strict_json.loads(text.decode("ascii"))
    except ValueError:
        return None


def lines(file: BinaryIO) -> Iterator[Line]:
    end = 0
    while raw := file.readline(LONGEST):
        end += len(raw)
        yield Line(end, decoded(raw), raw.endswith(b"\n"))


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """All records that count. Needs no lock: a line that is being written is not yet whole, and is left out."""
    with open_to_read(Path(path)) as file:
        for line in lines(file):
            if isinstance(line.value, dict):
                yield line.value


# One writer at a time. The lock belongs to the open file, so it ends with its process, however that ends.

if sys.platform == "win32":
    import msvcrt
    import os

    FAR_BEYOND_THE_END = 1 << 40  # Windows locks bytes against readers too; nobody reads these

    def try_lock(fd: int) -> bool:
        os.lseek(fd, FAR_BEYOND_THE_END, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EDEADLK):
                return False
            raise
        return True
else:
    import fcntl

    def try_lock(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                return False
            raise
        return True


def lock(fd: int, patience_seconds: float) -> bool:
    """A killed holder needs a moment to be gone, so a refusal is asked again for a while."""
    deadline = time.monotonic() + patience_seconds
    while not try_lock(fd):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


# The journal: an append-only file in which a record counts once it is on the disk.
#
#     cbf53a1c 12345                      whoever opens the journal to write leaves its process id
#     8d777f38 {"observation": ...}       a record
#
# A killed writer leaves at most one torn line, at the end, which was never acknowledged; opening cuts it.
# A damaged line elsewhere is counted and left where it is, and all lines around it still count.

PATIENCE_SECONDS = 0.5

_TORN_BEGINNING = re.compile(rb"[0-9a-f]{0,8}( [0-9]*)?|\0*")


class Journal:
    """Open for appending, which only one process may have at a time."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.damaged = 0  # lines that do not count any more, though good ones follow
        self.cut_bytes = 0  # length of the torn tail that opening removed
        self._writing = Lock()
        self._torn_at: int | None = None
        with storing(self.path):
            self._fd = _opened(self.path)
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    def append(self, record: dict[str, Any]) -> None:
        """Returns once the record is on the disk; if it raises, the journal is as it was before."""
        try:
            line = encoded(record)
        except ValueError as error:
            raise ProfileError(f"a record is not stored in {self.path}: {error}") from None
        self._write(line)

    def records(self) -> Iterator[dict[str, Any]]:
        return read_records(self.path)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _begin(self) -> None:
        with storing(self.path):
            if not lock(self._fd, PATIENCE_SECONDS):
                raise _busy(self.path)
            self._repair()
        self._write(encoded(os.getpid()))
        with storing(self.path):
            sync_folder(self.path.parent)

    def _repair(self) -> None:
        """Cuts what follows the last good line."""
        size = os.fstat(self._fd).st_size
        good, self.damaged = _last_good(self.path)
        if not good.end and size:
            _refuse_foreign(self.path)
        self.cut_bytes = size - good.end
        os.ftruncate(self._fd, good.end)
        if not good.terminated:
            os.write(self._fd, b"\n")

    def _write(self, line: bytes) -> None:
        with storing(self.path), self._writing:
            self._take_back()
            self._torn_at = os.fstat(self._fd).st_size
            try:
                _write_whole(self._fd, line)
            except BaseException:
                with suppress(OSError):  # then the next write takes it back first
                    self._take_back()
                raise
            self._torn_at = None

    def _take_back(self) -> None:
        """Removes what a failed write left, or the next record would be glued to it and lost."""
        if self._torn_at is not None:
            os.ftruncate(self._fd, self._torn_at)
            self._torn_at = None


def _opened(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0), 0o666)


def _write_whole(fd: int, line: bytes) -> None:
    written = os.write(fd, line)
    if written < len(line):  # there was no room; asking once more makes the system say why
        written += os.write(fd, line[written:])
    if written < len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(fd)


def _last_good(path: Path) -> tuple[Line, int]:
    """The last line that counts, and how many damaged ones lie before it."""
    last, damaged, bad = Line(0, None, True), 0, 0
    with open_to_read(path) as file:
        for line in lines(file):
            if line.value is None:
                bad += 1
            else:
                last, damaged = line, bad
    return last, damaged


def _refuse_foreign(path: Path) -> None:
    """Cutting is for journals: a file without one good line is somebody else's, unless it is a torn beginning."""
    with open_to_read(path) as file:
        if not _TORN_BEGINNING.fullmatch(file.read(64)):
            raise ProfileError(f"{path} is not a journal of Ampere's, or wholly damaged: move it away, or name another")


def _busy(path: Path) -> BusyError:
    with open_to_read(path) as file:
        pids = [line.value for line in lines(file) if isinstance(line.value, int)]
    holder = f"process {pids[-1]}" if pids else "another process"
    return BusyError(f"{path} is in use by {holder}: wait until it ends, or stop it; what it measured is kept")
