"""A compiler that takes too long is ended together with its process: nothing less stops native code."""

import contextlib
import os
import threading
from typing import Iterator, Tuple

LIMIT_SECONDS = 120.0
SLOW_SECONDS = 30.0  # beyond it a measurement is flagged: it took longer to compile than most do to measure
TOO_LONG = 71  # the exit code that tells the host


@contextlib.contextmanager
def compiling_at_most(seconds: float) -> Iterator[None]:
    timer = threading.Timer(seconds, os._exit, (TOO_LONG,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def compiling_flags(seconds: float) -> Tuple[str, ...]:
    return ("slow_compile",) if seconds > SLOW_SECONDS else ()
