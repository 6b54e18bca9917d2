"""This machine as a device: a worker in a process of its own, with its allocator and threads."""

from __future__ import annotations

import os
import sys

from ampere.core.errors import DeviceError
from ampere.core.processes import python_program

from .environment import worker_environment
from .process_worker import ProcessWorker, WorkerOptions
from .transport import Transport, WorkerProcess


class LocalWorker(ProcessWorker):
    def __init__(
        self,
        allocator: str = "tuned",
        options: WorkerOptions | None = None,
        python: str = sys.executable,
        grace_seconds: float = 30.0,
    ) -> None:
        super().__init__(allocator, options, grace_seconds)
        self._command = tuple(python_program("ampere.worker.__main__", python))

    @property
    def worker_pid(self) -> int | None:
        return self._worker.pid if isinstance(self._worker, WorkerProcess) else None

    def _launched(self) -> Transport:
        environment = worker_environment(os.environ, self.allocator, self._threads)
        try:
            return WorkerProcess(self._command, environment)
        except OSError as problem:
            raise DeviceError(f"cannot start a worker with {self._command[0]} ({problem}); check the path") from None

    def _by_hand(self) -> str:
        return f"{self._command[0]} -m ampere.worker"
