"""Another machine as a device, with nothing installed there: the worker travels over the system's own ssh.

connect -> the worker arrives in a temporary folder -> asked and answered in lines -> hang up, nothing remains
   ^______________ a lost connection is made again, and the last request asked again ______________|
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import Any

from ..errors import DeviceError, RuntimeMissingError
from ..network import TrainingSetup
from ..worker.meters import DEFAULT_WATTS_PER_CORE
from ..worker.runtimes import description_of
from .address import Address
from .block import Block
from .connection import ConnectionLost, NeverRan, RemoteProcess
from .device import VariantFailed
from .environment import METER, TUNED, worker_environment
from .local import LocalDevice
from .parcel import arrival, parcel
from .process import WorkerGone, WorkerProcess
from .refusals import UNFIT, unfit, unreachable

SILENCE_SECONDS = 60.0  # of the host, after which the far end gives up
RECONNECT_SECONDS = 120.0
LOSSES_AT_MOST = 3  # for one request: a device that goes down each time it trains a variant cannot train it
PAUSE_SECONDS = 2.0


class SshDevice(LocalDevice):
    """Watched and started again as a worker of this machine is."""

    def __init__(
        self, address: Address, allocator: str = "tuned", watts_per_core: float = DEFAULT_WATTS_PER_CORE
    ) -> None:
        super().__init__(allocator, watts_per_core)
        self.address = address
        self.reconnect_seconds = RECONNECT_SECONDS
        self._command = (address.by_hand(), address.python)
        self._reached = False

    def block(self, subject: Mapping[str, Any], setup: TrainingSetup | None = None, **options: Any) -> Block:
        source = str(subject.get("factory", "")).rpartition(":")[0]
        if source.endswith(".py"):
            raise VariantFailed(
                f"{source} is a file of this machine and does not travel: profile and estimate it from its layers, "
                "or install it there and name it as package.module:function"
            )
        return super().block(subject, setup, **options)

    def _result(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        try:
            return super()._result(request, seconds)
        except RuntimeMissingError as problem:
            runtime = request.get("runtime") or request.get("setup", {}).get("runtime", "torch")
            raise RuntimeMissingError(self._not_there(str(runtime))) from problem

    def _not_there(self, runtime: str) -> str:
        packages = " ".join(description_of(runtime).packages)
        name = "PyTorch" if runtime == "torch" else runtime
        return (
            f"{name} is not installed for {self.address.python} on {self.address.destination}: pip install {packages} "
            "there, or name another Python as in ssh://host?python=/path/to/python3"
        )

    def _ask(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        losses, deadline = 0, time.monotonic() + (self.reconnect_seconds if self._reached else 0.0)
        while True:
            try:
                answer = super()._ask(request, seconds)
            except NeverRan as problem:
                raise unfit(self.address, problem.code, str(problem)) from None
            except ConnectionLost as problem:
                if self._greeted:  # it was there, and was lost in the middle
                    losses, deadline = losses + 1, time.monotonic() + self.reconnect_seconds
                if losses == LOSSES_AT_MOST:
                    raise WorkerGone(f"the connection was lost {losses} times") from None
                if time.monotonic() > deadline:
                    raise unreachable(self.address, str(problem)) from None
                if not self._greeted:
                    time.sleep(PAUSE_SECONDS)
                self._greeted = False
            else:
                self._reached = True
                return answer

    def _launched(self) -> WorkerProcess:
        order = {
            "size": len(parcel()),
            "silence_seconds": SILENCE_SECONDS,
            "environment": worker_environment({METER: os.environ.get(METER, "")}, self.allocator, self._threads),
            "without": list(TUNED),
        }
        command = self.address.command(arrival(), json.dumps(order))
        try:
            return RemoteProcess(command, os.environ, parcel(), UNFIT)
        except OSError as problem:
            raise DeviceError(f"cannot start ssh ({problem}); install OpenSSH's client") from None
