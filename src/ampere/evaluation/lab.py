"""What experiments ask: a plan, the results of jobs, and open devices while measuring."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar

from ampere.core import Meter
from ampere.core.errors import ProfileError
from ampere.devices import Device, Worker

from .folder import Folder
from .job import Job, Report
from .plan import Plan, title_of

Result = TypeVar("Result")
YARDSTICK_SECONDS = 0.5


@dataclass(frozen=True)
class OpenDevice:
    device: Worker
    meter: Meter
    yardstick_seconds: float  # of a nominal step: the condition that an experiment's own blocks refer to
    yardstick_joules: float | None


class Lab:
    def __init__(self, folder: Folder, plan: Plan) -> None:
        self.folder, self.plan = folder, plan
        self._known: dict[Any, Any] = {}
        self._stack = ExitStack()

    def agree(self) -> None:
        """Refuses a folder that holds another plan's figures, or another machine's."""
        self.folder.agree(self.plan, {device: self.describe(device)["id"] for device in self.plan.all_devices})

    def done(self, job: Job[Any]) -> bool:
        return self.folder.of_job(job).exists()

    def do(self, job: Job[Any], report: Report) -> None:
        if not self.done(job):
            job.do(self, self.folder.of_job(job), report)

    def get(self, job: Job[Result]) -> Result:
        """Read once; an experiment that forgot to name a job among its needs hears it here."""
        if not self.done(job):
            raise ProfileError(f"{job.name} was not measured yet: run the experiment again")
        return self.remember(job, lambda: job.load(self.folder.of_job(job)))

    def remember(self, key: object, make: Callable[[], Result]) -> Result:
        """For as long as this process lives."""
        if key not in self._known:
            self._known[key] = make()
        found: Result = self._known[key]
        return found

    def describe(self, device: str) -> dict[str, Any]:
        """What a device is and where its joules come from, for the records."""
        found = self._device(device)
        return {"title": title_of(device), **found.identity, "meter": found.meter.to_json()}

    def open(self, device: str) -> OpenDevice:
        """It stays open for the jobs that follow."""
        return self.remember(("open", device), lambda: self._opened(device))

    def _opened(self, name: str) -> OpenDevice:
        device = self._device(name)
        worker = device.worker()
        nominal = worker.yardstick(YARDSTICK_SECONDS)
        return OpenDevice(worker, device.meter, nominal.cpu_seconds, nominal.joules)

    def _device(self, spec: str) -> Device:
        """With another seed than profiles: what is tested is measured anew, also where measuring is simulated."""
        made = Device(spec, seed=self.plan.seed + 1)
        return self.remember(("device", spec), lambda: self._stack.enter_context(made))

    def __enter__(self) -> Lab:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
