"""A worker at the far end of an ssh connection: a process here that speaks for one there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .conversation import ConnectionLost, WorkerGone
from .process import WorkerProcess

ENDED_BY_SSH = 255


class NeverRan(Exception):
    """The far end answered, but could not start a worker: its exit code, and what it said."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(said)
        self.code = code


class RemoteProcess(WorkerProcess):
    patience_seconds = 5.0
    we_beat = True

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], parcel: bytes, unfit: Sequence[int]
    ) -> None:
        """`unfit` are exit codes that say why no worker can run there."""
        self._unfit = unfit
        super().__init__(command, environment, parcel)

    def _gone(self) -> Exception:
        epitaph, code = self._epitaph(), self._process.returncode
        if code == ENDED_BY_SSH or code is None or code < 0:
            return ConnectionLost("\n".join(self._said) or epitaph)
        if code in self._unfit:
            return NeverRan(code, self._said[-1] if self._said else "")
        return WorkerGone(epitaph, code)
