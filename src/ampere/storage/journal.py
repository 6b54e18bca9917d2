"""The journal: an append-only file with one writer, in which a record counts once it is on the disk.

    cbf53a1c 12345                      the process id of whoever opened the journal to write
    8d777f38 {"observation": ...}       a record

A line is the CRC-32 of a JSON text, a space, and the text; it counts if its checksum is right. A killed writer leaves
at most one torn line, at the end, which was never acknowledged; opening removes it. A damaged line elsewhere, and one
that only another Ampere can read, is counted and left in place, and all lines around it still count. The lock belongs
to the open file, so it ends with its process.
"""

import errno
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, NamedTuple

from ampere.core.errors import BusyError, ProfileError
from ampere.storage import files as strict_json

from .files import open_to_read, storing, sync_folder
from .locks import lock

LONGEST = 32_000_000  # bytes, of a line and of all
MOST_VALUES = 800_000
_MOVE_AWAY = "move it away; what its profile holds stays, and the next run begins a new one"


class Line(NamedTuple):
    end: int  # offset of the byte after it
    values: int  # JSON values up to there, about
    intact: bool  # its checksum is right
    value: Any  # None if damaged, or if another Ampere wrote what this one cannot read
    terminated: bool


def encoded(value: Any) -> bytes:
    """A value as a line of a journal."""
    text = strict_json.dumps(value).encode("ascii")
    if len(text) + 10 > LONGEST:
        raise ValueError(f"it is longer than {LONGEST / 1e6:.0f} MB")
    return b"%08x %b\n" % (zlib.crc32(text), text)


def decoded(raw: bytes) -> tuple[bool, Any]:
    """Whether the checksum of a line is right, and its value; None if it cannot be read."""
    seal, _, text = raw.removesuffix(b"\n").partition(b" ")
    if seal != b"%08x" % zlib.crc32(text):
        return False, None
    try:
        return True, strict_json.loads(text.decode("ascii"))
    except ValueError:
        return True, None


def lines(path: Path) -> Iterator[Line]:
    """Every line of a journal, damaged or not; ProfileError where they are more than can be read in two seconds."""
    end = values = 0
    with open_to_read(path) as file:
        if os.fstat(file.fileno()).st_size > LONGEST:
            raise ProfileError(f"{path} is larger than {LONGEST / 1e6:.0f} MB: {_MOVE_AWAY}")
        for raw in file:
            end += len(raw)
            values += _values(raw)
            if values > MOST_VALUES:
                raise ProfileError(f"{path} holds more than {MOST_VALUES:,} values: {_MOVE_AWAY}")
            yield Line(end, values, *decoded(raw), raw.endswith(b"\n"))


def _values(raw: bytes) -> int:
    return sum(map(raw.count, (b",", b":", b"[", b"{")))


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """All records that count. It needs no lock: a line that is still being written is left out."""
    for line in lines(Path(path)):
        if isinstance(line.value, dict):
            yield line.value


PATIENCE_SECONDS = 0.5

_TORN_BEGINNING = re.compile(rb"[0-9a-f]{0,8}( [0-9]*)?|\0*")


class Journal:
    """A journal that is open for appending, by one process at a time."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.damaged = 0  # lines that are lost, though good ones follow, and those that cannot be read
        self.cut_bytes = 0  # length of the torn tail that opening removed
        self._writing = Lock()
        self._torn_at: int | None = None
        self._values = 0
        with storing(self.path):
            self._fd = _opened(self.path)
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    def append(self, *records: dict[str, Any]) -> None:
        """Store records; they are on the disk when this returns. If it raises, the journal is unchanged."""
        try:
            raw = b"".join(map(encoded, records))
        except ValueError as error:
            raise ProfileError(f"a record was not stored in {self.path}: {error}") from None
        self._write(raw)
        self._values += _values(raw)

    @property
    def filled(self) -> float:
        """The part of what a journal may hold that is there."""
        return max(self._values / MOST_VALUES, os.fstat(self._fd).st_size / LONGEST)

    def records(self) -> Iterator[dict[str, Any]]:
        return read_records(self.path)

    def clear(self) -> None:
        """Remove all records. The file stays: whoever waits for its lock must not write to one that is gone."""
        with storing(self.path), self._writing:
            os.ftruncate(self._fd, 0)
        self._values = 0

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
        """Remove what follows the last good line."""
        size = os.fstat(self._fd).st_size
        good, self.damaged = _last_good(self.path)
        if not good.end and size:
            _refuse_other_files(self.path)
        self.cut_bytes, self._values = size - good.end, good.values
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
                with suppress(OSError):  # the next write tries again first
                    self._take_back()
                raise
            self._torn_at = None

    def _take_back(self) -> None:
        """Remove what a failed write left; the next record would be appended to it and lost."""
        if self._torn_at is not None:
            os.ftruncate(self._fd, self._torn_at)
            self._torn_at = None


def _opened(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0), 0o666)


def _write_whole(fd: int, line: bytes) -> None:
    written = os.write(fd, line)
    if written < len(line):  # no room was left; writing again makes the system report why
        written += os.write(fd, line[written:])
    if written < len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(fd)


def _last_good(path: Path) -> tuple[Line, int]:
    """The last line that counts, and the number of damaged lines before it."""
    last, damaged, bad = Line(0, 0, True, None, True), 0, 0
    for line in lines(path):
        bad += line.value is None
        if line.intact:
            last, damaged = line, bad
    return last, damaged


def _refuse_other_files(path: Path) -> None:
    """Raise for a file without a good line, unless it is the torn beginning of a journal: it is not ours to change."""
    with open_to_read(path) as file:
        if not _TORN_BEGINNING.fullmatch(file.read(64)):
            raise ProfileError(
                f"{path} is not an Ampere journal, or is damaged throughout: move it away, or use another"
            )


def _busy(path: Path) -> BusyError:
    pids = [line.value for line in lines(path) if isinstance(line.value, int)]
    holder = f"process {pids[-1]}" if pids else "another process"
    return BusyError(f"{path} is in use by {holder}: wait until it ends, or stop it; its measurements are kept")
