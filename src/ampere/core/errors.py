"""Every error that Ampere raises.

A message says what happened, where, and what to do. Each class has its exit code. A worker reports its errors to the
host as a type and one line.
"""

from typing import ClassVar, Dict

from .escaping import printable


class AmpereError(Exception):
    """An error that the user can act on, shown as one line and never as a traceback."""

    exit_code: ClassVar[int] = 1

    def __str__(self) -> str:
        """The message, in which names from files and workers are escaped."""
        return printable(super().__str__())


class UsageError(AmpereError):
    """An option or argument that makes no sense."""

    exit_code = 2


class ModelError(AmpereError):
    """A model that cannot be found, built, traced or trained."""

    exit_code = 3


class ProfileError(AmpereError):
    """A profile, journal or network file that is missing, damaged, of another device or too new."""

    exit_code = 4


class DeviceError(AmpereError):
    """A device or worker that cannot be reached, or does not answer as it should."""

    exit_code = 5


class RuntimeMissingError(AmpereError):
    """The training runtime is not installed."""

    exit_code = 6


class StorageError(AmpereError):
    """A file that cannot be written: the disk is full, or permission is missing."""

    exit_code = 7


class BusyError(AmpereError):
    """A file or worker that another process is using."""

    exit_code = 8


class MeterError(AmpereError):
    """A meter that is missing, may not be read, or reads no reliable joules."""

    exit_code = 9


class ConformanceError(AmpereError):
    """A worker that does not follow the protocol."""

    exit_code = 10


class MoreExpensive(AmpereError):
    """A model whose training costs more than its baseline or budget allows."""

    exit_code = 11


class AcceleratorError(AmpereError):
    """An accelerator that is not there, not visible, in use, full, or whose driver is too old."""

    exit_code = 12


class Interrupted(AmpereError):
    """A run that the user stopped; what was measured is kept."""

    exit_code = 130


OUT_OF_MEMORY_SIGNS = ("can't allocate memory", "out of memory", "not enough memory", "cannot allocate memory")


class WorkerError(Exception):
    """An error in a worker; docs/reference/protocol.md lists its types."""

    def __init__(self, type: str, message: str) -> None:
        super().__init__(message)
        self.type = type

    def to_json(self) -> Dict[str, str]:
        return {"type": self.type, "message": str(self)}


ACCELERATOR = "accelerator"  # the type of an error in a worker whose accelerator cannot be used


def bad_request(message: str) -> WorkerError:
    return WorkerError("bad_request", f"{message:.500}")  # it quotes what was sent


def as_worker_error(problem: BaseException) -> WorkerError:
    """An exception from building or training a variant, as a type and one line."""
    if isinstance(problem, WorkerError):
        return problem
    line = first_line(problem)
    if isinstance(problem, MemoryError) or any(sign in line.lower() for sign in OUT_OF_MEMORY_SIGNS):
        return WorkerError("out_of_memory", line)
    return WorkerError("variant_failed", line)


def first_line(problem: BaseException) -> str:
    """The class of an exception and the first line of its message."""
    lines = str(problem).strip().splitlines()
    name = type(problem).__name__
    return f"{name}: {lines[0]}" if lines else name
