"""A device that has a worker: asked in lines, watched, and started again when it dies."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar

from ampere.core import Measurement, Meter, TrainingSetup
from ampere.core.errors import DeviceError, MeterError, UsageError, WorkerError
from ampere.core.protocol import COMPILE_LIMIT_SECONDS, COMPILE_TIMEOUT, COMPILE_TIMEOUT_EXIT_CODE
from ampere.core.setup import CPU
from ampere.devices.external_meters import logged_meter
from ampere.meters import DEFAULT_WATTS_PER_CORE
from ampere.runtimes import description_of

from .answer_fields import CHECK_IT, Unusable, check_fields
from .answers import (
    as_error,
    check_version,
    compiled_too_long,
    handshake,
    impossible,
    impossible_yardstick,
    read_answer,
)
from .device import VariantDied, VariantFailed, Yardstick, fingerprint
from .transport import BEAT_SECONDS, MISSED_BEATS, TOO_SLOW, Transport, WorkerBusy, WorkerGone

ATTEMPTS = 2
IMPOSSIBLE_IN_A_ROW = 3  # variants, after which the worker is given up
TRAINING = ("block", "yardstick")
START_SECONDS = 60.0
DEFAULT_SECONDS_LIMIT = 60.0
Found = TypeVar("Found", Measurement, Yardstick)
PATIENT_WINDOWS = 12  # of a slow counter, before a worker counts as hanging: it may measure a block three times


@dataclass(frozen=True)
class WorkerOptions:
    """What a worker is asked for in its handshake and with every request."""

    meter: str = ""  # its name; "" leaves the choice to the worker
    watts_per_core: float = DEFAULT_WATTS_PER_CORE  # where joules are modelled
    compile_limit: float = COMPILE_LIMIT_SECONDS
    on: str = CPU  # the processor that trains there, or `auto`


class ProcessWorker(ABC):
    def __init__(
        self, allocator: str = "tuned", options: WorkerOptions | None = None, grace_seconds: float = 30.0
    ) -> None:
        """`grace_seconds` are given to a block beyond three times its own limit before it counts as hanging."""
        self.options = options or WorkerOptions()
        self.allocator = allocator
        self.compile_limit = self.options.compile_limit
        self.restarts = 0
        self.beat_seconds = BEAT_SECONDS  # how often a busy worker says that it is alive
        self._grace = grace_seconds
        self._threads = 1
        self._on = self.options.on  # as the worker resolved it, once it is greeted
        self._worker: Transport | None = None
        self._greeted = False
        self._meter: dict[str, Any] | None = None
        self._outside = logged_meter(self.options.meter)
        self._cores, self._silence_seconds = 1, 0.0
        self._impossible_in_a_row = 0

    @abstractmethod
    def _launched(self) -> Transport:
        """A worker that nothing was said to yet."""

    @abstractmethod
    def _by_hand(self) -> str:
        """What a user would try."""

    def clock(self) -> float:
        return time.monotonic()

    def hello(self) -> dict[str, Any]:
        return self._result(self._handshake(), self._grace)

    def identity(self) -> dict[str, Any]:
        return fingerprint(self.hello())

    def block(
        self,
        workload: Mapping[str, Any],
        setup: TrainingSetup | None = None,
        *,
        iterations: int = 10,
        warmup: int = 4,
        pairing: str = "step",
        isolation: str = "inline",
        stage: str = "step",
        seconds_limit: float = DEFAULT_SECONDS_LIMIT,
        count: bool = True,
        power: bool = False,
    ) -> Measurement:
        setup = setup or TrainingSetup()
        self._use_threads(setup.threads)
        request = {
            "do": "block",
            "workload": dict(workload),
            "setup": setup.to_json(),
            "iterations": iterations,
            "warmup": warmup,
            "pairing": pairing,
            "isolation": isolation,
            "stage": stage,
            "seconds_limit": seconds_limit,
            "compile_limit": self.compile_limit,
            **({} if count else {"count": False}),
            **({"power": True} if power else {}),
        }
        compiling = self.compile_limit if _may_compile(setup.runtime) else 0.0
        patience = 3 * seconds_limit + self._grace + compiling
        found, problem = self._possible(lambda: self._measurement(self._result(request, patience)), impossible)
        self._impossible_in_a_row = 0 if found else self._impossible_in_a_row + 1
        if found is not None:
            return found
        what = f"the worker reported impossible values {ATTEMPTS} times ({problem}); they were discarded"
        if self._impossible_in_a_row >= IMPOSSIBLE_IN_A_ROW:
            raise DeviceError(f"{what}, as for the {IMPOSSIBLE_IN_A_ROW - 1} variants before; {CHECK_IT}")
        raise VariantFailed(what)

    def yardstick(
        self,
        seconds: float = 1.0,
        threads: int = 1,
        runtime: str = "torch",
        power: bool = False,
        count: bool = True,
    ) -> Yardstick:
        self._use_threads(threads)
        request = {"do": "yardstick", "seconds": seconds, "threads": threads, "runtime": runtime}
        request.update({**({"power": True} if power else {}), **({} if count else {"count": False})})
        patience = 3 * seconds + self._grace
        found, problem = self._possible(
            lambda: Yardstick.from_json(self._result(request, patience)), impossible_yardstick
        )
        if found is None:
            raise DeviceError(f"the worker reported an impossible yardstick {ATTEMPTS} times ({problem}); {CHECK_IT}")
        return found

    def _possible(
        self, ask: Callable[[], Found], impossible: Callable[[Found, int, float], str | None]
    ) -> tuple[Found | None, str]:
        """What the worker reports once that is possible; None, and what was wrong with it, after some attempts."""
        problem: str | None = None
        for _ in range(ATTEMPTS):
            began = time.monotonic()
            try:
                found = ask()
                problem = impossible(found, self._cores, time.monotonic() - began)
            except Unusable as error:
                problem = error.what
            if problem is None:
                return found, ""
        return None, str(problem)

    def _measurement(self, record: Mapping[str, Any]) -> Measurement:
        meter = Meter.reported(self._outside.describe() if self._outside else self._meter or {})
        return Measurement.from_json({**record, "meter": meter, "allocator": self.allocator})

    def counters(self, check: bool, seconds: float = 600.0) -> list[dict[str, Any]]:
        """What can be read there, and why what is there cannot be."""
        found: list[dict[str, Any]] = self._result({"do": "counters", "check": check}, seconds)["counters"]
        return found

    def close(self) -> None:
        if self._worker:
            self._worker.close()
        self._worker = None
        if self._outside:
            self._outside.released()

    def __enter__(self) -> ProcessWorker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _result(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """With the joules that a meter on the host's side read meanwhile, where there is one."""
        if self._outside is None:
            return self._answered(request, seconds)
        return self._outside.around(request, lambda asked: self._answered(asked, seconds))

    def _handshake(self) -> dict[str, Any]:
        """The handshake: with the name of a meter, which the worker then uses for all its blocks."""
        meter = self._outside.for_worker if self._outside else self.options.meter
        on = {} if self.options.on == CPU else {"on": self.options.on}
        named = {"meter": meter} if meter else {}
        return {**handshake(self.options.watts_per_core, self.beat_seconds), **named, **on}

    def _answered(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        request = {**request, "watts_per_core": self.options.watts_per_core}
        causes: list[str] = []
        while len(causes) < ATTEMPTS:
            try:
                answer = self._ask(request, seconds)
            except WorkerGone as problem:
                if problem.code == COMPILE_TIMEOUT_EXIT_CODE:
                    raise compiled_too_long(self.compile_limit) from None
                causes.append(str(problem))
                continue
            result, kind, message = read_answer(answer)
            if result is not None:
                check_fields(request, result)
                return result
            if kind == COMPILE_TIMEOUT:
                self._kill()  # it ends anyway, perhaps in the middle of the next request
                raise compiled_too_long(self.compile_limit)
            if kind != "variant_died":
                raise as_error(kind, message)
            causes.append(message)
        if request["do"] != "block" or not self._greeted:
            if causes[-1] == TOO_SLOW:  # it works, but gets too little of the processor
                raise DeviceError(
                    f"the worker was started twice, and {TOO_SLOW}: other work may take the processor there; end it, "
                    "or try again later"
                )
            raise DeviceError(f"the worker died twice: {causes[-1]}; try {self._by_hand()}")
        if all("SIGKILL" in cause for cause in causes):
            why = "the worker was killed twice on the same variant (SIGKILL), as the system does when memory runs out"
            raise VariantDied(f"{why}; use fewer channels or a smaller batch", out_of_memory=True)
        raise VariantDied(f"training died twice on the same variant: {causes[-1]}; leave it out")

    def _kill(self) -> None:
        if self._worker:
            self._worker.kill()

    def _ask(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        worker = self._started()
        if request["do"] == "yardstick" and self._on != CPU:
            request = {**request, "on": self._on}
        windows = PATIENT_WINDOWS * (self._meter or {}).get("window_seconds", 0.0)
        answer = worker.ask(request, seconds + windows)
        if request["do"] in TRAINING and self._silence_seconds:  # what it trains with is loaded by now
            worker.silence_seconds = self._silence_seconds
        return answer

    def _started(self) -> Transport:
        if self._worker and self._worker.alive:
            return self._worker
        if self._worker:
            self._worker.kill()
            self.restarts += 1
            self._worker = None
        worker = self._launched()
        try:
            self._greet(worker)
        except BaseException:
            worker.kill()
            raise
        self._worker = worker
        return worker

    def _greet(self, worker: Transport) -> None:
        """A worker that cannot even say hello is no fault of the variant that it was started for."""
        self._greeted = False
        said, kind, message = read_answer(worker.ask(self._handshake(), START_SECONDS))
        if said is None and kind == "busy":
            raise WorkerBusy(message)
        if said is None:
            raise UsageError(message) if kind == "bad_request" and self.options.meter else as_error(kind, message)
        check_version(said)
        check_fields({"do": "hello"}, said)
        beat_seconds = said.get("beat_seconds")
        if beat_seconds not in (None, self.beat_seconds):
            raise Unusable("hello", f"beat_seconds is {beat_seconds:g}, and {self.beat_seconds:g} was asked for")
        self._meter = self._meter or said["meter"]
        if said["meter"] != self._meter:
            raise MeterError(f"{self._meter['name']} is gone since the worker was started again: look for it first")
        self._cores = said["cores"]
        self._on = str((said.get("accelerator") or {}).get("on", CPU))
        self._silence_seconds = MISSED_BEATS * (beat_seconds or 0.0)
        if self._silence_seconds:
            worker.silence_seconds = max(START_SECONDS, self._silence_seconds)
        self._greeted = True

    def _use_threads(self, threads: int) -> None:
        """A worker serves one number of threads: a pool of threads, once started, cannot be made anew."""
        if threads != self._threads:
            self.close()
            self._threads = threads


def _may_compile(runtime: str) -> bool:
    try:
        return description_of(runtime).compiles
    except WorkerError:  # a device's own, of which nothing is known here
        return True
