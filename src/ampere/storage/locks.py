"""A lock on an open file, which ends with its process however that ends."""

import errno
import os
import sys
import time

if sys.platform == "win32":
    import msvcrt

    FAR_BEYOND_THE_END = 1 << 40  # Windows locks bytes against readers too, and there are none here

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
    """Whether the lock was taken. It is tried for a while, since a killed holder needs a moment to end."""
    deadline = time.monotonic() + patience_seconds
    while not try_lock(fd):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
