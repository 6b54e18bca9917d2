"""This machine as a device: a worker in a process of its own, with its allocator and threads."""

from __future__ import annotations

import os
import sys

from ampere.core.errors import DeviceError
from ampere.meters import DEFAULT_WATTS_PER_CORE

from .environment import METER, worker_environment
from .process_worker import ProcessWorker
from .transport import Transport, WorkerProcess

# The environment in which a worker runs: its allocator and its threads; and what a host reads there.


# This machine as a device: a worker in a process of its own.


class LocalWorker(ProcessWorker):
    def __init__(
        self,
        allocator: str = "tuned",
        watts_per_core: float = DEFAULT_WATTS_PER_CORE,
        python: str = sys.executable,
        grace_seconds: float = 30.0,
    ) -> None:
        super().__init__(allocator, watts_per_core, grace_seconds)
        self._command = (python, "-m", "ampere.worker")

    @property
    def worker_pid(self) -> int | None:
        return self._worker.pid if isinstance(self._worker, WorkerProcess) else None

    def _launched(self) -> Transport:
        environment = worker_environment({**os.environ, METER: self._asked_meter()}, self.allocator, self._threads)
        try:
            return WorkerProcess(self._command, environment)
        except OSError as problem:
            raise DeviceError(f"cannot start a worker with {self._command[0]} ({problem}); check the path") from None

    def _by_hand(self) -> str:
        return " ".join(self._command)
