"""Another machine as a device, with nothing installed there: the worker travels over the system's own ssh.

connect -> the worker arrives in a temporary folder -> asked and answered in lines -> hang up, nothing remains
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from ..errors import DeviceError, RuntimeMissingError
from ..worker.meters import DEFAULT_WATTS_PER_CORE
from ..worker.runtimes import description_of
from .address import Address
from .connection import NeverRan, RemoteProcess
from .conversation import Conversation
from .environment import METER, TUNED, worker_environment
from .parcel import arrival, parcel
from .refusals import UNFIT, unfit, unreachable
from .remote import RemoteDevice

SILENCE_SECONDS = 60.0  # of the host, after which the far end gives up


class SshDevice(RemoteDevice):
    def __init__(
        self, address: Address, allocator: str = "tuned", watts_per_core: float = DEFAULT_WATTS_PER_CORE
    ) -> None:
        super().__init__(allocator, watts_per_core)
        self.address = address

    def _result(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        try:
            return super()._result(request, seconds)
        except RuntimeMissingError as problem:
            runtime = str(request.get("runtime") or request.get("setup", {}).get("runtime", "torch"))
            if runtime in self.hello()["runtimes"]:  # and yet it does not start: the far end knows why
                raise
            raise RuntimeMissingError(self._not_there(runtime)) from problem

    def _not_there(self, runtime: str) -> str:
        packages = " ".join(description_of(runtime).packages)
        name = "PyTorch" if runtime == "torch" else runtime
        return (
            f"{name} is not installed for {self.address.python} on {self.address.destination}: pip install {packages} "
            "there, or name another Python as in ssh://host?python=/path/to/python3"
        )

    def _ask(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        try:
            return super()._ask(request, seconds)
        except NeverRan as problem:
            raise unfit(self.address, problem.code, str(problem)) from None

    def _launched(self) -> Conversation:
        order = {
            "size": len(parcel()),
            "silence_seconds": SILENCE_SECONDS,
            "environment": worker_environment({METER: self._asked_meter()}, self.allocator, self._threads),
            "without": list(TUNED),
        }
        command = self.address.command(arrival(), json.dumps(order))
        try:
            return RemoteProcess(command, os.environ, parcel(), UNFIT)
        except OSError as problem:
            raise DeviceError(f"cannot start ssh ({problem}); install OpenSSH's client") from None

    def _unreachable(self, said: str) -> Exception:
        return unreachable(self.address, said)

    def _by_hand(self) -> str:
        return f"{self.address.by_hand()} {self.address.python}"
