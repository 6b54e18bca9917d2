"""Every error that Ampere raises. A message says what happened, where, and what to do; each class has its exit code."""

from typing import ClassVar, Dict

# One small tree of errors. Each message says what, where and what to do; each class has its exit code.


class AmpereError(Exception):
    """Something the user can act on. Shown as one line, never as a traceback."""

    exit_code: ClassVar[int] = 1


class UsageError(AmpereError):
    """An option or argument that makes no sense."""

    exit_code = 2


class ModelError(AmpereError):
    """A model that cannot be found, built, traced or trained."""

    exit_code = 3


class ProfileError(AmpereError):
    """A profile, journal or network file that is missing, damaged, foreign or too new."""

    exit_code = 4


class DeviceError(AmpereError):
    """A device or its worker that does not do its part."""

    exit_code = 5


class RuntimeMissingError(AmpereError):
    """The training runtime is not installed."""

    exit_code = 6


class StorageError(AmpereError):
    """A disk that is full or may not be written."""

    exit_code = 7


class BusyError(AmpereError):
    """Another process holds what is needed."""

    exit_code = 8


class MeterError(AmpereError):
    """A meter that is not there, may not be read, or does not tell joules for sure."""

    exit_code = 9


class ConformanceError(AmpereError):
    """A worker that does not keep to the protocol."""

    exit_code = 10


class Interrupted(AmpereError):
    """The user stopped the run; what was measured is kept."""

    exit_code = 130


# What can go wrong in a worker, as the host will read it: a type and one line.

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
