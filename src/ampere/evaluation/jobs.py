"""A job is a piece of measuring that is done once, kept in a file, and shared by all experiments that need it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ampere import api
from ampere.core import TrainingSetup
from ampere.devices import VariantDied, VariantFailed
from ampere.estimation.normalization import drift_share_of, to_reference
from ampere.models.loading import find_space
from ampere.profiling.experiment import Experiment
from ampere.profiling.observing import merged, observation, request
from ampere.profiling.sources import SpaceSource
from ampere.profiling.strategies.strategy import Guess
from ampere.storage.files import read_document, write_document
from ampere.storage.profile import Observation, Profile

from .plan import OURS, Plan, is_simulated
from .validation import measure_twice, unseen

if TYPE_CHECKING:
    from .session import OpenDevice, Session


Result = TypeVar("Result", covariant=True)
Report = Callable[[float], None]  # the share that is done


class Job(Protocol[Result]):
    """Frozen, and equal to another that would measure the same."""

    @property
    def device(self) -> str: ...

    @property
    def name(self) -> str:
        """Of its file, and as shown while it runs."""

    @property
    def seconds(self) -> float:
        """About how long it will take."""

    def do(self, lab: Session, path: Path, report: Report) -> None:
        """Measures, and leaves the file only when all is measured."""

    def load(self, path: Path) -> Result: ...


def file_name(*parts: object) -> str:
    return "-".join(str(part).replace(":", "-").replace("/", "-") for part in parts if part != "")


# A profile of one family on one device, by one method and protocol.

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

    def do(self, lab: Session, path: Path, report: Report) -> None:
        """A journal beside the file is where a stopped run goes on."""
        api.profile(
            self.family,
            seconds=self.budget_seconds,
            out=path,
            seed=self.seed,
            method=self.method,
            protocol=self.protocol,
            device=self.device,
            on_progress=lambda p: report(p.elapsed / p.seconds),
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


# Trials: networks that were not profiled, really trained, each measured twice.

TRIALS, FORMAT = "trials", 1
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

    def do(self, lab: Session, path: Path, report: Report) -> None:
        profile = lab.get(self.profile)
        device = lab.open(self.device).device
        pairs = measure_twice(
            self.build(profile), device, profile, self.seed, lambda done, total: report(done / total), self.rounds
        )
        write_document(path, TRIALS, FORMAT, [[half.to_json() for half in pair] for pair in pairs])

    def load(self, path: Path) -> tuple[Pair, ...]:
        return tuple(_pair(first, second) for first, second in read_document(path, TRIALS, FORMAT))


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


# Blocks: networks of an experiment's own, each measured in several shuffled rounds.

BLOCKS, BLOCKS_JOB_FORMAT = "blocks", 1
START_SECONDS = 1.0


@dataclass(frozen=True)
class BlocksJob:
    device: str
    subject: str  # what is measured, in a word
    build: Callable[[], Sequence[Experiment]] = field(compare=False)  # only when it is measured
    count: int
    rounds: int
    block_seconds: float
    profile: ProfileJob | None = None  # whose condition the figures refer to, where they are held against its estimates

    @property
    def name(self) -> str:
        return file_name("blocks", self.device, self.subject, self.count, f"{self.rounds}r")

    @property
    def seconds(self) -> float:
        if is_simulated(self.device):
            return 1.0 + 0.01 * self.count
        return START_SECONDS + self.rounds * self.count * self.block_seconds

    def do(self, lab: Session, path: Path, report: Report) -> None:
        opened, experiments = lab.open(self.device), self.build()
        if self.profile is not None:
            known = lab.get(self.profile)
            opened = replace(opened, yardstick_seconds=known.yardstick_seconds, yardstick_joules=known.yardstick_joules)
        seen: list[list[Observation]] = [[] for _ in experiments]
        rng, guess, done = Random(self.name), Guess(), 0
        for _ in range(self.rounds):
            for i in rng.sample(range(len(experiments)), len(experiments)):
                seen[i] += _measured(experiments[i], opened, guess)
                done += 1
                report(done / (self.rounds * len(experiments)))
        write_document(path, BLOCKS, BLOCKS_JOB_FORMAT, [o.to_json() if o else None for o in _referred(seen, opened)])

    def load(self, path: Path) -> tuple[Observation | None, ...]:
        """None is a place that stays empty: what could not be trained is shown as missing."""
        return tuple(r and Observation.from_json(r) for r in read_document(path, BLOCKS, BLOCKS_JOB_FORMAT))


def _measured(experiment: Experiment, on: OpenDevice, guess: Guess) -> list[Observation]:
    asked = request(experiment, TrainingSetup(), guess.seconds(experiment.network), thorough=True)
    try:
        block = on.device.block(**asked)
    except (VariantDied, VariantFailed):
        return []
    found = observation(experiment, block, on.meter, on.yardstick_seconds, on.yardstick_joules)
    if found is None:
        return []
    guess.learn(found)
    return [found]


def _referred(seen: list[list[Observation]], on: OpenDevice) -> list[Observation | None]:
    """All at the same speed of the machine."""
    together = [merged(rounds)[0] if rounds else None for rounds in seen]
    sharing = drift_share_of([o.measurement for o in together if o]).part
    return [o and replace(o, measurement=to_reference(o.measurement, on.yardstick_seconds, sharing)) for o in together]
