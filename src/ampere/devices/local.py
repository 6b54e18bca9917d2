"""This machine as a device: a worker in a process of its own, watched, and started again when it dies."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from ..errors import DeviceError, MeterError, RuntimeMissingError
from ..network import TrainingSetup
from ..worker import PROTOCOL
from ..worker.meters import DEFAULT_WATTS_PER_CORE
from .block import Block, Yardstick
from .device import VariantDied, VariantFailed
from .environment import worker_environment
from .fingerprint import fingerprint
from .process import WorkerGone, WorkerProcess

ATTEMPTS = 2
START_SECONDS = 60.0
DEFAULT_SECONDS_LIMIT = 60.0


class LocalDevice:
    def __init__(
        self,
        allocator: str = "tuned",
        watts_per_core: float = DEFAULT_WATTS_PER_CORE,
        python: str = sys.executable,
        grace_seconds: float = 30.0,
    ) -> None:
        """`grace_seconds` are given to a block beyond three times its own limit before it counts as hanging."""
        self.allocator = allocator
        self.watts_per_core = watts_per_core
        self.restarts = 0
        self._command: tuple[str, ...] = (python, "-m", "ampere.worker")
        self._grace = grace_seconds
        self._threads = 1
        self._worker: WorkerProcess | None = None
        self._greeted = False
        self._meter: dict[str, Any] | None = None

    def clock(self) -> float:
        return time.monotonic()

    def hello(self) -> dict[str, Any]:
        return self._result({"do": "hello"}, self._grace)

    def identity(self) -> dict[str, Any]:
        return fingerprint(self.hello())

    def block(
        self,
        subject: Mapping[str, Any],
        setup: TrainingSetup | None = None,
        *,
        iterations: int = 10,
        warmup: int = 4,
        pairing: str = "step",
        isolation: str = "inline",
        stage: str = "step",
        seconds_limit: float = DEFAULT_SECONDS_LIMIT,
    ) -> Block:
        setup = setup or TrainingSetup()
        self._use_threads(setup.threads)
        request = {
            "do": "block",
            "subject": dict(subject),
            "setup": setup.to_json(),
            "iterations": iterations,
            "warmup": warmup,
            "pairing": pairing,
            "isolation": isolation,
            "stage": stage,
            "seconds_limit": seconds_limit,
        }
        return Block.from_json(self._result(request, 3 * seconds_limit + self._grace))

    def yardstick(self, seconds: float = 1.0, threads: int = 1, runtime: str = "torch") -> Yardstick:
        self._use_threads(threads)
        request = {"do": "yardstick", "seconds": seconds, "threads": threads, "runtime": runtime}
        return Yardstick(**self._result(request, 3 * seconds + self._grace))

    def counters(self, check: bool, seconds: float = 600.0) -> list[dict[str, Any]]:
        """What can be read there, and why what is there cannot be."""
        found: list[dict[str, Any]] = self._result({"do": "counters", "check": check}, seconds)["counters"]
        return found

    def close(self) -> None:
        if self._worker:
            self._worker.close()
        self._worker = None

    def __enter__(self) -> LocalDevice:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def worker_pid(self) -> int | None:
        return self._worker.pid if self._worker else None

    def _result(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        request = {**request, "watts_per_core": self.watts_per_core}
        causes: list[str] = []
        while len(causes) < ATTEMPTS:
            try:
                answer = self._ask(request, seconds)
            except WorkerGone as problem:
                causes.append(str(problem))
                continue
            error = answer.get("error")
            if error is None:
                result: dict[str, Any] = answer["result"]
                return result
            if error["type"] != "variant_died":
                raise _as_error(error["type"], error["message"])
            causes.append(error["message"])
        if request["do"] != "block" or not self._greeted:
            raise DeviceError(f"the worker died twice: {causes[-1]}; try {' '.join(self._command)}")
        raise VariantDied(f"the worker died twice on the same variant: {causes[-1]}; leave it out")

    def _ask(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        return self._started().ask(request, seconds)

    def _started(self) -> WorkerProcess:
        if self._worker and self._worker.alive:
            return self._worker
        if self._worker:
            self._worker.kill()
            self.restarts += 1
        self._worker = self._launched()
        self._greet(self._worker)
        return self._worker

    def _launched(self) -> WorkerProcess:
        environment = worker_environment(os.environ, self.allocator, self._threads)
        try:
            return WorkerProcess(self._command, environment)
        except OSError as problem:
            raise DeviceError(f"cannot start a worker with {self._command[0]} ({problem}); check the path") from None

    def _greet(self, worker: WorkerProcess) -> None:
        """A worker that cannot even say hello is no fault of the variant that it was started for."""
        self._greeted = False
        hello = worker.ask({"do": "hello", "watts_per_core": self.watts_per_core}, START_SECONDS)
        if "error" in hello:
            raise _as_error(hello["error"]["type"], hello["error"]["message"])
        if hello["result"]["protocol"] != PROTOCOL:
            raise DeviceError("the worker is of another version than this program; install the same one")
        self._meter = self._meter or hello["result"]["meter"]
        if hello["result"]["meter"] != self._meter:
            raise MeterError(f"{self._meter['name']} is gone since the worker was started again: look for it first")
        self._greeted = True

    def _use_threads(self, threads: int) -> None:
        """A worker serves one number of threads: a pool of threads, once started, cannot be made anew."""
        if threads != self._threads:
            self.close()
            self._threads = threads


def _as_error(kind: str, message: str) -> Exception:
    if kind == "runtime_missing":
        return RuntimeMissingError(message)
    if kind == "meter_failed":
        return MeterError(message)
    if kind == "out_of_memory":
        return VariantDied(f"out of memory ({message}); smaller channels or batches fit", out_of_memory=True)
    if kind == "variant_failed":
        return VariantFailed(f"a variant cannot be trained: {message}")
    return DeviceError(f"the worker refused a request: {message}")
