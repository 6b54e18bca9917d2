"""The file system's refusals in one clear line each, and opening a file that may be anything."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import BinaryIO

from ..errors import ProfileError, StorageError

CAUSES = {
    errno.ENOSPC: "the disk is full: free some space and run again",
    errno.EDQUOT: "your disk quota is used up: free some space and run again",
    errno.EFBIG: "the file would be larger than the system allows: raise the limit (ulimit -f) and run again",
    errno.EROFS: "the file system is read-only: choose another place with --out or AMPERE_HOME",
    errno.EACCES: "permission denied: choose another place with --out or AMPERE_HOME",
    errno.EPERM: "permission denied: choose another place with --out or AMPERE_HOME",
    errno.EISDIR: "it is a folder: name a file",
    errno.ENOTDIR: "a part of its path is a file, not a folder: choose another place",
    errno.EEXIST: "a part of its path is a file, not a folder: choose another place",
    errno.ENAMETOOLONG: "the name is too long: choose a shorter one",
    errno.ENOLCK: "its file system offers no locks: choose a local disk with --out or AMPERE_HOME",
    errno.EIO: "the disk reports an error: check it, or choose another place with --out or AMPERE_HOME",
}


@contextmanager
def storing(path: Path) -> Iterator[None]:
    """What the system refuses in this block is a StorageError about `path`."""
    try:
        yield
    except OSError as error:
        cause = CAUSES.get(error.errno or 0, f"{error.strerror or error}: choose another place with --out")
        raise StorageError(f"cannot write {path}: {cause}") from error
    except ValueError as error:  # a zero byte in the path
        raise StorageError(f"cannot write {str(path)!r}: {error}; choose another name") from error


def open_to_read(path: Path) -> BinaryIO:
    """A regular file, opened. A pipe or device would block or never end, so it is refused unread."""
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise ProfileError(f"{path} does not exist{_like(path)}") from None
    except (OSError, ValueError) as error:
        raise ProfileError(f"cannot read {str(path)!r}: {getattr(error, 'strerror', None) or error}") from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise ProfileError(f"{path} is not a regular file: name a file that Ampere wrote")
    return os.fdopen(fd, "rb")


def read_at_most(path: Path, limit: int) -> bytes:
    with open_to_read(path) as file:
        size = os.fstat(file.fileno()).st_size
        raw = b"" if size > limit else file.read(limit + 1)
    if max(size, len(raw)) > limit:
        raise ProfileError(f"{path} is larger than {limit / 1e6:.0f} MB, so it is not a file that Ampere wrote")
    return raw


def sync_folder(folder: Path) -> None:
    """Makes a new name in a folder last through a power cut. Windows neither needs nor allows it."""
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
    return f": did you mean {' or '.join(near)}?" if near else ": check the name, or make one with `ampere profile`"
