"""One small tree of errors. Each message says what, where and what to do; each class has its exit code."""

from typing import ClassVar


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
