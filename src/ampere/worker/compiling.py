"""A compiler that takes too long is ended with its process, after a last answer: nothing less stops native code.

build ......... limit ---> compile_timeout, by a thread of its own ---> the process ends
"""

import contextlib
import os
import threading
from typing import Callable, Iterator, Tuple

from .errors import WorkerError
from .language import COMPILE_TIMEOUT, COMPILE_TIMEOUT_EXIT_CODE

SLOW_SECONDS = 30.0  # beyond it a measurement is flagged: it took longer to compile than most do to measure
ANSWERING_SECONDS = 5.0  # a host that does not listen keeps nothing alive

Tell = Callable[[WorkerError], None]


def nobody(error: WorkerError) -> None:
    """The exit code says it too."""


@contextlib.contextmanager
def compiling_at_most(seconds: float, tell: Tell = nobody) -> Iterator[None]:
    timer = threading.Timer(seconds, _end, (seconds, tell))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # one that has rung ends the process: there is no second answer


def too_long(seconds: float) -> WorkerError:
    return WorkerError(COMPILE_TIMEOUT, f"compiling took longer than {seconds:g} s")


def compiling_flags(seconds: float) -> Tuple[str, ...]:
    return ("slow_compile",) if seconds > SLOW_SECONDS else ()


def _end(seconds: float, tell: Tell) -> None:
    telling = threading.Thread(target=tell, args=(too_long(seconds),), daemon=True)
    telling.start()
    telling.join(ANSWERING_SECONDS)
    os._exit(COMPILE_TIMEOUT_EXIT_CODE)
