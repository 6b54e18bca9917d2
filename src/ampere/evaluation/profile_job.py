"""A profile of one family on one device, by one method and protocol."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ampere import api
from ampere.storage.profile import Profile

from .job import Report, file_name
from .plan import OURS, Plan, is_simulated

if TYPE_CHECKING:
    from .lab import Lab

FILE_SECONDS = 0.5  # for the last fit and the file; starting the device is within the budget
SIMULATED_SECONDS = 2.0  # of real time, whatever the simulated device believes


@dataclass(frozen=True)
class ProfileJob:
    device: str
    family: str
    budget_seconds: float
    seed: int = 0
    method: str = OURS[0]
    protocol: str = OURS[1]

    @property
    def name(self) -> str:
        return file_name(
            "profile", self.device, self.family, self.method, self.protocol, f"{self.budget_seconds:g}s", self.seed
        )

    @property
    def seconds(self) -> float:
        return SIMULATED_SECONDS if is_simulated(self.device) else self.budget_seconds + FILE_SECONDS

    def do(self, lab: Lab, path: Path, report: Report) -> None:
        """A journal beside the file is where a stopped run goes on."""
        api.profile(
            self.family,
            seconds=self.budget_seconds,
            out=path,
            seed=self.seed,
            method=self.method,
            timing=self.protocol,
            device=self.device,
            progress=lambda p: report(p.done / p.total),
        )

    def load(self, path: Path) -> Profile:
        return Profile.load(path)


def of_family(plan: Plan, device: str, family: str) -> ProfileJob:
    """The one that most experiments share."""
    return ProfileJob(device, family, plan.profile_seconds(device, family), plan.seed)


def rivals_of(plan: Plan, device: str, family: str) -> tuple[ProfileJob, ...]:
    """Those of methods that need measurements of their own, with as many seconds as ours."""
    seconds = plan.profile_seconds(device, family)
    return tuple(ProfileJob(device, family, seconds, plan.seed, *campaign) for campaign in plan.rivals(device, family))
