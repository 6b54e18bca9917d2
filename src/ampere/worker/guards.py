"""What keeps one block from harming the next: forked children, a time limit on compiling.

    a block by itself     this process --fork--> child          every block starts from the same state of the allocator
    other blocks          this process --fork--> helper         it stays for some blocks, one after another

A pool of threads does not survive a fork: a child that needed it would hang. So this process never starts one, nor
builds networks, whose pieces of memory all of its children would have.

A compiler that takes too long is ended with its process, after a last answer from a thread of its own, because nothing
less stops native code.
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
    answer = _answer_of(task)
    try:
        with os.fdopen(write_end, "wb") as pipe:
            pipe.write(answer)
    finally:
        os._exit(0)


def _answer_of(task: Task) -> bytes:
    """The task's result, or its error, as a line."""
    try:
        answer: Dict[str, Any] = {"result": task()}
    except BaseException as problem:
        answer = {"error": as_worker_error(problem).to_json()}
    return json.dumps(answer).encode() + b"\n"


def _collect(child: int, read_end: int, memory: MemoryWatch) -> Dict[str, Any]:
    # A line, not the end of the file: a model's own subprocesses may hold the pipe open.
    with os.fdopen(read_end, "rb") as pipe:
        line = pipe.readline()
    if not line.endswith(b"\n"):
        raise _death_of(child, memory)
    os.waitpid(child, 0)
    return _result_in(line)


def _death_of(child: int, memory: MemoryWatch) -> WorkerError:
    """Why a child that has given no answer ended."""
    _, status, usage = os.wait4(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == COMPILE_TIMEOUT_EXIT_CODE:
        return WorkerError(COMPILE_TIMEOUT, "compiling took too long")
    if _killed(status) and memory.ran_out(usage.ru_maxrss * PEAK_UNIT):
        return WorkerError("out_of_memory", "the system ended the process that trained the variant")
    return WorkerError("variant_died", "the process that trained the variant " + _cause(status))


def _result_in(line: bytes) -> Dict[str, Any]:
    answer = json.loads(line.decode())
    if "error" in answer:
        raise WorkerError(answer["error"]["type"], answer["error"]["message"])
    result: Dict[str, Any] = answer["result"]
    return result


class Helper:
    """A forked child that does one task after another, with threads that this process never has.

    It ends with this process, whose end of its pipe is closed then, and a task that ends it ends nothing else.
    """

    tasks = 0  # that it was given

    def __init__(self, do: Callable[[Dict[str, Any]], Dict[str, Any]]) -> None:
        asked, ask = os.pipe()
        answers, answered = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            os.close(ask)
            os.close(answers)
            _help_and_exit(do, asked, answered)
        os.close(asked)
        os.close(answered)
        self._ask, self._answers = os.fdopen(ask, "wb"), os.fdopen(answers, "rb")

    def result(self, request: Dict[str, Any]) -> Dict[str, Any]:
        """Result of a request; WorkerError where it fails. One whose helper has died needs a new one."""
        memory = MemoryWatch()
        self.tasks += 1
        with contextlib.suppress(BrokenPipeError):  # it died just now: it will not answer
            self._ask.write(json.dumps(request).encode() + b"\n")
            self._ask.flush()
        line = self._answers.readline()
        if line.endswith(b"\n"):
            return _result_in(line)
        self.close()
        raise _death_of(self._child, memory)

    @property
    def alive(self) -> bool:
        return not self._answers.closed

    def end(self) -> None:
        """End it now, and wait until its memory is free. A process that a model has started may hold its pipe open."""
        self.close()
        os.kill(self._child, signal.SIGKILL)
        os.waitpid(self._child, 0)

    def close(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._ask.close()
        self._answers.close()


def _help_and_exit(do: Callable[[Dict[str, Any]], Dict[str, Any]], asked: int, answered: int) -> None:
    """Answer requests until there are no more, and exit."""
    try:
        with os.fdopen(asked, "rb") as requests, os.fdopen(answered, "wb") as answers:
            for line in requests:
                request = json.loads(line.decode())
                answers.write(_answer_of(lambda: do(request)))  # noqa: B023 - it is done before the next one
                answers.flush()
    finally:
        os._exit(0)


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
