"""What keeps one block from harming the next: a forked child, a time limit on compiling.

A block may run in a forked child, so that every block starts from the same state of the allocator. A compiler
that takes too long is ended with its process, after a last answer from a thread of its own, because nothing less stops
native code.
"""

import contextlib
import json
import os
import signal
import sys
import threading
from typing import Any, Callable, Dict, Iterator, Tuple

from ampere.core.errors import WorkerError, as_worker_error
from ampere.core.processes import signal_name
from ampere.core.protocol import COMPILE_TIMEOUT, COMPILE_TIMEOUT_EXIT_CODE

from .memory import MemoryWatch

CAN_FORK = hasattr(os, "fork")
PEAK_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes

Task = Callable[[], Dict[str, Any]]


def in_child(task: Task) -> Dict[str, Any]:
    """Result of a task that runs in a forked child; WorkerError where the child fails or dies."""
    memory = MemoryWatch()
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        _work_and_exit(task, write_end)
    os.close(write_end)
    return _collect(child, read_end, memory)


def _work_and_exit(task: Task, write_end: int) -> None:
    """Run the task and exit: the child must never run what the parent would run next."""
    try:
        answer: Dict[str, Any] = {"result": task()}
    except BaseException as problem:
        answer = {"error": as_worker_error(problem).to_json()}
    try:
        with os.fdopen(write_end, "wb") as pipe:
            pipe.write(json.dumps(answer).encode() + b"\n")
    finally:
        os._exit(0)


def _collect(child: int, read_end: int, memory: MemoryWatch) -> Dict[str, Any]:
    # A line, not the end of the file: a model's own subprocesses may hold the pipe open.
    with os.fdopen(read_end, "rb") as pipe:
        line = pipe.readline()
    _, status, usage = os.wait4(child, 0)
    if not line.endswith(b"\n"):
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == COMPILE_TIMEOUT_EXIT_CODE:
            raise WorkerError(COMPILE_TIMEOUT, "compiling took too long")
        if _killed(status) and memory.ran_out(usage.ru_maxrss * PEAK_UNIT):
            raise WorkerError("out_of_memory", "the system ended the process that trained the variant")
        raise WorkerError("variant_died", "the process that trained the variant " + _cause(status))
    answer = json.loads(line.decode())
    if "error" in answer:
        raise WorkerError(answer["error"]["type"], answer["error"]["message"])
    result: Dict[str, Any] = answer["result"]
    return result


def _killed(status: int) -> bool:
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def _cause(status: int) -> str:
    if os.WIFSIGNALED(status):
        return "was ended by " + signal_name(os.WTERMSIG(status))
    return f"ended with exit code {os.WEXITSTATUS(status)}"


SLOW_SECONDS = 30.0  # beyond it a measurement is flagged: it took longer to compile than most do to measure
ANSWERING_SECONDS = 5.0  # a host that does not listen keeps nothing alive

Report = Callable[[WorkerError], None]


def no_report(error: WorkerError) -> None:
    """Send nothing; the exit code carries the error too."""


@contextlib.contextmanager
def compiling_at_most(seconds: float, report: Report = no_report) -> Iterator[None]:
    """End the process, after reporting why, if the block takes longer than this."""
    timer = threading.Timer(seconds, _end, (seconds, report))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # a timer that fired ends the process: there must be no second answer


def too_long(seconds: float) -> WorkerError:
    return WorkerError(COMPILE_TIMEOUT, f"compiling took longer than {seconds:g} s")


def compiling_flags(seconds: float) -> Tuple[str, ...]:
    return ("slow_compile",) if seconds > SLOW_SECONDS else ()


def _end(seconds: float, report: Report) -> None:
    reporting = threading.Thread(target=report, args=(too_long(seconds),), daemon=True)
    reporting.start()
    reporting.join(ANSWERING_SECONDS)
    os._exit(COMPILE_TIMEOUT_EXIT_CODE)
