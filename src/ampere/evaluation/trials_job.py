"""Trials: networks that were not profiled, really trained, each measured twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampere.models.loading import find_space
from ampere.profiling.experiment import Experiment
from ampere.profiling.sources import SpaceSource
from ampere.storage.files import read_document, write_document
from ampere.storage.profile import Observation, Profile
from ampere.validation.validate import measure_twice, unseen

from .job import Job, Report, file_name
from .plan import Plan, is_simulated
from .profile_job import ProfileJob, of_family, rivals_of

if TYPE_CHECKING:
    from .lab import Lab

KIND, FORMAT = "trials", 1
START_SECONDS = 1.0
BLOCK_SECONDS = {"lenet5": 0.09, "cnn5": 0.12, "har": 0.12, "lstm": 0.12, "transformer": 0.37, "resnet": 0.25}

Pair = tuple[Observation, Observation]
Build = Callable[[Profile], Sequence[Experiment]]


@dataclass(frozen=True)
class TrialsJob:
    profile: ProfileJob
    subject: str  # which networks, in a word
    build: Build = field(compare=False)  # traced only when they are measured
    networks: int
    rounds: int
    block_seconds: float
    seed: int = 0

    @property
    def device(self) -> str:
        return self.profile.device

    @property
    def family(self) -> str:
        return self.profile.family

    @property
    def name(self) -> str:
        return file_name("trials", self.device, self.subject, self.networks, f"{self.rounds}r", self.seed)

    @property
    def seconds(self) -> float:
        if is_simulated(self.device):
            return 1.0 + 0.05 * self.networks
        return START_SECONDS + 2 * self.rounds * self.networks * self.block_seconds

    def do(self, lab: Lab, path: Path, report: Report) -> None:
        profile = lab.get(self.profile)
        device = lab.open(self.device).device
        pairs = measure_twice(
            self.build(profile), device, profile, self.seed, lambda done, total: report(done / total), self.rounds
        )
        write_document(path, KIND, FORMAT, [[half.to_json() for half in pair] for pair in pairs])

    def load(self, path: Path) -> tuple[Pair, ...]:
        return tuple(_pair(first, second) for first, second in read_document(path, KIND, FORMAT))


def _pair(first: dict[str, Any], second: dict[str, Any]) -> Pair:
    return Observation.from_json(first), Observation.from_json(second)


def trials_of(plan: Plan, device: str, family: str, again: bool = False) -> TrialsJob:
    """Random networks of a family; `again` are the same ones, measured another time."""
    count = plan.networks(family)

    def build(profile: Profile) -> list[Experiment]:
        return unseen(SpaceSource(find_space(family)), (profile,), count, plan.seed)

    subject = f"{family}-again" if again else family
    seconds = BLOCK_SECONDS.get(family, 0.3)
    return TrialsJob(of_family(plan, device, family), subject, build, count, plan.rounds, seconds, plan.seed)


def needs(trials: Callable[[Plan], Sequence[TrialsJob]], rivals: bool = False) -> Callable[[Plan], list[Job[Any]]]:
    """Trials, each after the profile that its networks must not be in; where asked, with the rivals' profiles."""

    def jobs(plan: Plan) -> list[Job[Any]]:
        found: list[Job[Any]] = []
        for trial in trials(plan):
            found += [trial.profile, trial, *(rivals_of(plan, trial.device, trial.family) if rivals else ())]
        return found

    return jobs
