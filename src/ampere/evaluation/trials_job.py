"""Trials: networks that were not profiled, really trained, each measured twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampere.models.loading import find_space
from ampere.profiles.files import read_document, write_document
from ampere.profiles.profile import Observation
from ampere.profiling.sources import SpaceSource
from ampere.validation import measure_twice, unseen

from .job import Job, Report, file_name
from .plan import Plan, is_simulated
from .profile_job import ProfileJob, of_family

if TYPE_CHECKING:
    from .lab import Lab

KIND, FORMAT = "trials", 1
BLOCK_SECONDS = {"lenet5": 0.06, "cnn5": 0.12, "har": 0.1, "lstm": 0.2, "transformer": 0.4, "resnet": 0.5}
START_SECONDS = 3.0

Pair = tuple[Observation, Observation]


@dataclass(frozen=True)
class TrialsJob:
    profile: ProfileJob
    networks: int
    rounds: int
    seed: int = 0

    @property
    def device(self) -> str:
        return self.profile.device

    @property
    def family(self) -> str:
        return self.profile.family

    @property
    def name(self) -> str:
        return file_name("trials", self.device, self.family, self.networks, f"{self.rounds}r", self.seed)

    @property
    def seconds(self) -> float:
        if is_simulated(self.device):
            return 1.0 + 0.05 * self.networks
        return START_SECONDS + 2 * self.rounds * self.networks * BLOCK_SECONDS.get(self.family, 0.3)

    def do(self, lab: Lab, path: Path, report: Report) -> None:
        profile = lab.get(self.profile)
        experiments = unseen(SpaceSource(find_space(self.family)), (profile,), self.networks, self.seed)
        device = lab.open(self.device)["tuned"]
        pairs = measure_twice(
            experiments, device, profile, self.seed, lambda done, total: report(done / total), self.rounds
        )
        write_document(path, KIND, FORMAT, [[half.to_json() for half in pair] for pair in pairs])

    def load(self, path: Path) -> tuple[Pair, ...]:
        return tuple(_pair(first, second) for first, second in read_document(path, KIND, FORMAT))


def _pair(first: dict[str, Any], second: dict[str, Any]) -> Pair:
    return Observation.from_json(first), Observation.from_json(second)


def of_family_trials(plan: Plan, device: str, family: str) -> TrialsJob:
    return TrialsJob(of_family(plan, device, family), plan.networks(family), plan.rounds, plan.seed)


def needs(trials: Callable[[Plan], Sequence[TrialsJob]]) -> Callable[[Plan], list[Job[Any]]]:
    """Trials, each after the profile that its networks must not be in."""
    return lambda plan: [job for trial in trials(plan) for job in (trial.profile, trial)]
