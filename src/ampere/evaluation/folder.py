"""Where an evaluation keeps what it measured, what came out, and the pictures.

FOLDER/
  run.json          with which plan all of this was made
  measured/*.json   jobs: profiles, trials, blocks
  NAME.json         the records of an experiment
  NAME.png .svg     drawn from them
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ampere.core.errors import ProfileError, UsageError
from ampere.storage.files import read_document, write_document

from .job import Job
from .plan import Plan

RUN, RESULT, FORMAT = "evaluation_run", "evaluation", 1


class Folder:
    def __init__(self, path: Path) -> None:
        self.path = path

    def agree(self, plan: Plan, device_ids: dict[str, str]) -> None:
        """Figures of two plans or two machines in one folder would be compared by mistake."""
        path, asked = self.path / "run.json", {"quick": plan.quick, "seed": plan.seed}
        known: dict[str, Any] = read_document(path, RUN, FORMAT) if path.exists() else {**asked, "devices": {}}
        if {k: known[k] for k in asked} != asked:
            kind = f"{'a quick' if known['quick'] else 'a full'} run with seed {known['seed']}"
            raise UsageError(f"{self.path} holds {kind}: choose another folder with --out, or ask for the same")
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
