"""JSON files that are either whole or refused, and replaced at once or not at all.

    {"ampere":"profile","format":1,"sha256":"<of all the rest>","body":{...}}

The spelling of the envelope is fixed, so the checksum is taken over the bytes as they are in the file, before anything
is parsed: a flipped bit is noticed anywhere, also where JSON would read the same value.

Files may come from strangers, so numbers must be finite, keys unique and sizes bounded. How many values a text holds
is counted before the parser builds them, because a megabyte of `[],[],` becomes thirty megabytes of lists.
"""

import errno
import json
import math
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any, BinaryIO, NoReturn

from ampere.core.errors import ProfileError, StorageError

from .places import home

MOST_VALUES = 700_000
LONGEST_INTEGER = 30
DEEPEST = 32
ABANDONED_SECONDS = 60.0


def dumps(value: Any) -> str:
    """A value as JSON: keys sorted, no spaces, ASCII only. ValueError where `loads` could not read it again."""
    try:
        text = json.dumps(value, allow_nan=False, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"it holds a value that JSON cannot express ({error})") from None
    loads(text)
    return text


def loads(text: str) -> Any:
    """The value of a JSON text; ValueError where it is too large, too deep, or not strict JSON."""
    if values_in(text) > MOST_VALUES:
        raise ValueError(f"it holds more than {MOST_VALUES:,} values")
    try:
        value = json.loads(
            text, object_pairs_hook=_unique, parse_float=_finite, parse_int=_short, parse_constant=_no_constant
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    _refuse_depth(value)
    return value


def values_in(text: str) -> int:
    """About how many values a JSON text holds, without reading it."""
    return sum(map(text.count, ",:[{"))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("it has the same key twice")
    return record


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:20]} is too large")
    return number


def _short(text: str) -> int:
    if len(text) > LONGEST_INTEGER:
        raise ValueError(f"it holds an integer of {len(text)} digits")
    return int(text)


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")


def _refuse_depth(value: Any) -> None:
    """Raise where a value is nested too deeply; level by level, so that depth costs no stack."""
    level = [[value]]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _inside(outer) if type(inner) in (dict, list)]
        if not level:
            return
    raise ValueError(f"it is nested deeper than {DEEPEST} levels")


def _inside(value: Any) -> Any:
    return value.values() if type(value) is dict else value


CAUSES = {
    errno.ENOSPC: "the disk is full: free some space and run again",
    errno.EDQUOT: "your disk quota is used up: free some space and run again",
    errno.EFBIG: "the file would be larger than the system allows: raise the limit (ulimit -f) and run again",
    errno.EROFS: "the file system is read-only: choose another place{}",
    errno.EACCES: "permission denied: choose another place{}",
    errno.EPERM: "permission denied: choose another place{}",
    errno.EISDIR: "it is a folder: name a file",
    errno.ENOTDIR: "a part of its path is a file, not a folder: choose another place",
    errno.EEXIST: "a part of its path is a file, not a folder: choose another place",
    errno.ENAMETOOLONG: "the name is too long: choose a shorter one",
    errno.ENOLCK: "its file system offers no locks: choose a local disk{}",
    errno.EIO: "the disk reports an error: check it, or choose another place{}",
}


@contextmanager
def storing(path: Path) -> Iterator[None]:
    """Turn an error of the operating system in this block into a StorageError about `path`, with what to do."""
    try:
        yield
    except OSError as error:
        cause = CAUSES.get(error.errno or 0, f"{error.strerror or error}: choose another place{{}}")
        remedy = cause.replace("{}", _by_which_option(path))
        raise StorageError(f"cannot write {path}: {remedy}") from error
    except ValueError as error:  # a zero byte in the path
        raise StorageError(f"cannot write {str(path)!r}: {error}; choose another name") from error


def _by_which_option(path: Path) -> str:
    """How the user moves a file elsewhere: profiles live in AMPERE_HOME, all else is named by --out."""
    if Path(path).absolute().is_relative_to(home().absolute()):
        return " by setting AMPERE_HOME to a folder that you may write"
    return " with --out"


def open_to_read(path: Path) -> BinaryIO:
    """A regular file, opened to read. A pipe or device is refused, because it could block or never end."""
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise ProfileError(f"{path} does not exist{_like(path)}") from None
    except (OSError, ValueError) as error:
        raise ProfileError(f"cannot read {str(path)!r}: {getattr(error, 'strerror', None) or error}") from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise ProfileError(f"{path} is not a regular file: use a file that Ampere wrote")
    return os.fdopen(fd, "rb")


def read_at_most(path: Path, limit: int) -> bytes:
    """The bytes of a file; ProfileError where there are more than the limit."""
    with open_to_read(path) as file:
        size = os.fstat(file.fileno()).st_size
        raw = b"" if size > limit else file.read(limit + 1)
    if max(size, len(raw)) > limit:
        raise ProfileError(f"{path} is larger than {limit / 1e6:.0f} MB, so it is not a file that Ampere wrote")
    return raw


def sync_folder(folder: Path) -> None:
    """Make a new name in a folder survive a power cut. Windows neither needs nor allows it."""
    if os.name == "nt":
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _like(path: Path) -> str:
    try:
        names = sorted(p.name for p in path.parent.iterdir() if p.name != path.name and p.name[0] != ".")
    except OSError:
        return f": there is no folder {path.parent}; check the path"
    near = get_close_matches(path.name, names, n=3, cutoff=0.5)
    return f": did you mean {' or '.join(near)}?" if near else ": check the name, or create one with `ampere profile`"


LARGEST = 32_000_000  # bytes; parsed, that stays well below half a gigabyte

_HEAD = re.compile(rb'\{"ampere":"([a-z_]{1,40})","format":([0-9]{1,9}),')
_SEAL = re.compile(rb'"sha256":"([0-9a-f]{64})","body":')
_END = b"}\n"


def write_document(path: Path, kind: str, version: int, body: Any) -> None:
    """Write a file with a checksum; whatever was there before is replaced at once."""
    write_whole(Path(path), _sealed(Path(path), kind, version, body))


def write_whole(path: Path, content: bytes | str, wait: bool = True) -> None:
    """Write a file as a whole or not at all: whatever was there before is replaced at once. Text becomes UTF-8.

    `wait` for the disk, except for what may be lost when the machine stops.
    """
    raw = content.encode("utf-8") if isinstance(content, str) else content
    with storing(path):
        there = Path(os.path.realpath(path))
        there.parent.mkdir(parents=True, exist_ok=True)
        if there.exists() and not there.is_file():  # a pipe or a device has no name beside it
            there.write_bytes(raw)
        else:
            _replace(there, raw, wait)


def append(path: Path, text: str) -> None:
    """Add text to the end of a file, which is made where it is missing."""
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(text)


def read_document(path: Path, kind: str, newest_version: int, oldest_version: int = 1) -> Any:
    """The body of a file, after its kind, version and checksum are checked."""
    return read_sealed(path, kind, newest_version, oldest_version)[0]


def read_sealed(path: Path, kind: str, newest_version: int, oldest_version: int = 1) -> tuple[Any, str]:
    """The body of a file, and its checksum."""
    path = Path(path)
    raw = read_at_most(path, LARGEST)
    head = _checked_head(path, raw, kind, newest_version)
    if _version(head) < oldest_version:
        raise ProfileError(older(str(path), _version(head), oldest_version))
    try:
        body, seal = _unsealed(path, raw, head)
        return loads(body.decode("ascii")), seal
    except ValueError as error:
        raise ProfileError(f"{path} was not written by Ampere: {error}") from None


def is_document(path: Path, kind: str) -> bool:
    """Whether the first bytes of a file say that it is a document of this kind."""
    try:
        with open(path, "rb") as file:
            head = _HEAD.match(file.read(100))
    except OSError:
        return False
    return head is not None and head[1].decode() == kind


def _sealed(path: Path, kind: str, version: int, body: Any) -> bytes:
    try:
        text = dumps(body).encode("ascii")
    except ValueError as error:
        raise ProfileError(f"{path} was not written: {error}") from None
    if len(text) > LARGEST - 200:
        raise ProfileError(
            f"{path} was not written: it would be larger than {LARGEST / 1e6:.0f} MB; split it into several files"
        )
    head = b'{"ampere":"%b","format":%d,' % (kind.encode(), version)
    return b'%b"sha256":"%b","body":%b}\n' % (head, _seal(head, text), text)


def _seal(head: bytes, body: bytes) -> bytes:
    checksum = sha256(head)
    checksum.update(body)
    return checksum.hexdigest().encode()


def _replace(path: Path, raw: bytes, wait: bool) -> None:
    """Write under another name, and rename once the bytes are on the disk."""
    _remove_abandoned(path.parent)
    fresh = path.with_name(f".ampere-{token_hex(8)}.tmp")
    try:
        with open(fresh, "xb") as file:
            file.write(raw)
            file.flush()
            if wait:
                os.fsync(file.fileno())
        if path.exists():
            fresh.chmod(stat.S_IMODE(path.stat().st_mode))
        fresh.replace(path)
    except BaseException:
        with suppress(OSError):
            fresh.unlink()
        raise
    if wait:
        sync_folder(path.parent)


def _remove_abandoned(folder: Path) -> None:
    """Remove what writers left that were killed; none takes so long."""
    for path in folder.glob(".ampere-*.tmp"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > ABANDONED_SECONDS:
                path.unlink()


def older(name: str, version: int, oldest_version: int) -> str:
    """The message about a file that was written before its format changed."""
    return (
        f"{name} was written by an older Ampere (format {version}, this one reads from {oldest_version}): "
        "move it away and profile again with `ampere profile`"
    )


def _version(head: bytes) -> int:
    found = _HEAD.match(head)
    return int(found[2]) if found else 0


def _checked_head(path: Path, raw: bytes, kind: str, newest_version: int) -> bytes:
    head = _HEAD.match(raw)
    if not head:
        raise ProfileError(
            f"{path} is not an Ampere {kind}, or its beginning is damaged: use another file, or create it again"
        )
    found, version = head[1].decode(), int(head[2])
    if found != kind:
        raise ProfileError(f"{path} is a {found}, not a {kind}: use another file")
    if version > newest_version:
        raise ProfileError(
            f"{path} was written by a newer Ampere (format {version}, this one reads up to {newest_version}): "
            "upgrade with pip install -U ampere-energy"
        )
    return head[0]


def _unsealed(path: Path, raw: bytes, head: bytes) -> tuple[bytes, str]:
    """The body, and its checksum."""
    seal = _SEAL.match(raw, len(head))
    if not seal or not raw.endswith(_END):
        raise ProfileError(f"{path} is cut short or damaged: restore a copy, or create it again")
    body = raw[seal.end() : -len(_END)]
    if _seal(head, body) != seal[1]:
        raise ProfileError(f"{path} is damaged (its checksum is wrong): restore a copy, or create it again")
    return body, seal[1].decode()
