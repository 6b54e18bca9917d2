"""A session of the evaluation: its plan, its folder, the results of jobs, and the devices that are open.

FOLDER/
  run.json          with which plan all of this was made
  measured/*.json   jobs: profiles, trials, blocks
  NAME.json         the records of an experiment
  NAME.png .svg .pdf drawn from them
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from ampere.core.errors import ProfileError, UsageError
from ampere.core.measurement import clock_of
from ampere.devices import Device, Worker
from ampere.estimation.normalization import Reference
from ampere.storage.files import read_document, write_document

from .jobs import Job, Report
from .plan import Plan, title_of

RUN, RESULT, FORMAT = "evaluation_run", "evaluation", 1
YARDSTICK_SECONDS = 0.5

Result = TypeVar("Result")


class Folder:
    """Where an evaluation keeps what it measured, its results and its pictures."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def agree(self, plan: Plan, device_ids: dict[str, str]) -> None:
        """Refuses a folder of another plan or machine: its figures would be compared by mistake."""
        path, wanted = self.path / "run.json", {"quick": plan.quick, "seed": plan.seed}
        known: dict[str, Any] = read_document(path, RUN, FORMAT) if path.exists() else {**wanted, "devices": {}}
        if {k: known[k] for k in wanted} != wanted:
            kind = f"{'a quick' if known['quick'] else 'a full'} run with seed {known['seed']}"
            raise UsageError(f"{self.path} holds {kind}: choose another folder with --out, or the same plan")
        for name, found in device_ids.items():
            if known["devices"].get(name, found) != found:
                raise UsageError(f"{self.path} holds figures of another {name} device: choose another with --out")
        write_document(path, RUN, FORMAT, {**known, "devices": {**known["devices"], **device_ids}})

    def known(self) -> tuple[Plan, dict[str, str]]:
        """The plan of the run that is kept here, and the ids of its devices."""
        path = self.path / "run.json"
        if not path.exists():
            raise ProfileError(f"{self.path} holds no evaluation: name a folder that `ampere evaluate` has filled")
        run = read_document(path, RUN, FORMAT)
        return Plan(run["quick"], run["seed"]), run["devices"]

    def of_job(self, job: Job[Any]) -> Path:
        return self.path / "measured" / f"{job.name}.json"

    def of_result(self, experiment: str) -> Path:
        return self.path / f"{experiment}.json"

    def result(self, experiment: str) -> dict[str, Any] | None:
        path = self.of_result(experiment)
        return read_document(path, RESULT, FORMAT) if path.exists() else None

    def keep(self, experiment: str, result: dict[str, Any]) -> Path:
        write_document(self.of_result(experiment), RESULT, FORMAT, result)
        return self.of_result(experiment)


@dataclass(frozen=True)
class OpenDevice:
    """A worker that stays open, and the condition in which the costs of an experiment's own blocks are given."""

    worker: Worker
    reference: Reference


class Session:
    """What experiments use: the plan, the results of jobs, and devices that stay open while measuring."""

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
        """The result of a job, read once; an error where an experiment did not name the job among its needs."""
        if not self.done(job):
            raise ProfileError(f"{job.name} was not measured yet: run the experiment again")
        return self.remember(job, lambda: job.load(self.folder.of_job(job)))

    def remember(self, key: object, make: Callable[[], Result]) -> Result:
        """Makes a value once and keeps it for as long as this process lives."""
        if key not in self._known:
            self._known[key] = make()
        found: Result = self._known[key]
        return found

    def describe(self, device: str) -> dict[str, Any]:
        """What a device is and where its joules come from, for the records."""
        found = self.device(device)
        return {"title": title_of(device), **found.identity, "meter": found.meter.to_json()}

    def open(self, device: str, threads: int = 1) -> OpenDevice:
        """A device, which stays open for the jobs that follow."""
        return self.remember(("open", device, threads), lambda: self._opened(device, threads))

    def _opened(self, name: str, threads: int) -> OpenDevice:
        """A device with another seed than profiles: what is tested is measured anew, also where it is simulated."""
        worker = self.device(name).worker()
        nominal = worker.yardstick(YARDSTICK_SECONDS, threads)
        return OpenDevice(worker, Reference(nominal.seconds(threads), nominal.joules, clock_of(threads)))

    def device(self, spec: str) -> Device:
        """A device, described and opened once."""
        made = Device(spec, seed=self.plan.seed + 1)
        return self.remember(("device", spec), lambda: self._stack.enter_context(made))

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
