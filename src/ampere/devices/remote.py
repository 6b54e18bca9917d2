"""A worker of another machine: a lost connection is made again, and the last request asked again."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from ampere.core import Measurement, TrainingSetup

from .answers import as_error
from .device import VariantFailed
from .process_worker import ProcessWorker
from .transport import ConnectionLost, WorkerBusy, WorkerGone

RECONNECT_SECONDS = 120.0
LOSSES_AT_MOST = 3  # for one request: a device that goes down each time it trains a variant cannot train it
PAUSE_SECONDS = 2.0


class RemoteWorker(ProcessWorker):
    reconnect_seconds = RECONNECT_SECONDS
    _reached = False  # ever

    @abstractmethod
    def _unreachable(self, said: str) -> Exception: ...

    def block(self, workload: Mapping[str, Any], setup: TrainingSetup | None = None, **options: Any) -> Measurement:
        source = str(workload.get("factory", "")).rpartition(":")[0]
        if source.endswith(".py"):
            raise VariantFailed(
                f"{source} is a file of this machine and does not travel: profile and estimate it from its layers, "
                "or install it there and name it as package.module:function"
            )
        return super().block(workload, setup, **options)

    def _ask(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        losses, deadline = 0, time.monotonic() + (self.reconnect_seconds if self._reached else 0.0)
        while True:
            try:
                answer = super()._ask(request, seconds)
            except ConnectionLost as problem:
                if self._greeted:  # it was there, and was lost in the middle
                    losses, deadline = losses + 1, time.monotonic() + self.reconnect_seconds
                if losses == LOSSES_AT_MOST:
                    raise WorkerGone(f"the connection was lost {losses} times") from None
                if time.monotonic() > deadline and isinstance(problem, WorkerBusy):
                    raise as_error("busy", str(problem)) from None
                if time.monotonic() > deadline:
                    raise self._unreachable(str(problem)) from None
                if not self._greeted:
                    time.sleep(PAUSE_SECONDS)
                self._greeted = False
            else:
                self._reached = True
                return answer
