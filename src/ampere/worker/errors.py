"""What can go wrong in a worker, as the host will read it: a type and one line."""

from typing import Dict

OUT_OF_MEMORY_SIGNS = ("can't allocate memory", "out of memory", "not enough memory", "cannot allocate memory")


class WorkerError(Exception):
    """`type` is one of those in docs/PROTOCOL.md."""

    def __init__(self, type: str, message: str) -> None:
        super().__init__(message)
        self.type = type

    def to_json(self) -> Dict[str, str]:
        return {"type": self.type, "message": str(self)}


def bad_request(message: str) -> WorkerError:
    return WorkerError("bad_request", message)


def as_worker_error(problem: BaseException) -> WorkerError:
    """An exception from building or training a variant, told in one line."""
    if isinstance(problem, WorkerError):
        return problem
    line = first_line(problem)
    if isinstance(problem, MemoryError) or any(sign in line.lower() for sign in OUT_OF_MEMORY_SIGNS):
        return WorkerError("out_of_memory", line)
    return WorkerError("variant_failed", line)


def first_line(problem: BaseException) -> str:
    lines = str(problem).strip().splitlines()
    name = type(problem).__name__
    return f"{name}: {lines[0]}" if lines else name
