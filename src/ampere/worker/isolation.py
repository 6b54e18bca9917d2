"""One block in a forked child, so that every block starts from the same state of the allocator."""

import json
import os
import signal
from typing import Any, Callable, Dict

from .language import COMPILE_TIMEOUT, COMPILE_TIMEOUT_EXIT_CODE
from .errors import WorkerError, as_worker_error

CAN_FORK = hasattr(os, "fork")

Task = Callable[[], Dict[str, Any]]


def in_child(task: Task) -> Dict[str, Any]:
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        _work_and_exit(task, write_end)
    os.close(write_end)
    return _collect(child, read_end)


def _work_and_exit(task: Task, write_end: int) -> None:
    """Never returns: the child must not run what the parent would run next."""
    try:
        answer: Dict[str, Any] = {"result": task()}
    except BaseException as problem:
        answer = {"error": as_worker_error(problem).to_json()}
    try:
        with os.fdopen(write_end, "wb") as pipe:
            pipe.write(json.dumps(answer).encode() + b"\n")
    finally:
        os._exit(0)


def _collect(child: int, read_end: int) -> Dict[str, Any]:
    # A line, not the end of the file: a model's own subprocesses may hold the pipe open.
    with os.fdopen(read_end, "rb") as pipe:
        line = pipe.readline()
    status = os.waitpid(child, 0)[1]
    if not line.endswith(b"\n"):
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == COMPILE_TIMEOUT_EXIT_CODE:
            raise WorkerError(COMPILE_TIMEOUT, "compiling took too long")
        raise WorkerError("variant_died", "training the variant " + _cause(status))
    answer = json.loads(line.decode())
    if "error" in answer:
        raise WorkerError(answer["error"]["type"], answer["error"]["message"])
    result: Dict[str, Any] = answer["result"]
    return result


def _cause(status: int) -> str:
    if os.WIFSIGNALED(status):
        return "was ended by " + signal.Signals(os.WTERMSIG(status)).name
    return f"ended the process with exit code {os.WEXITSTATUS(status)}"
