"""One writer at a time. The lock belongs to the open file, so it ends with its process, however that ends."""

import errno
import sys
import time

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
