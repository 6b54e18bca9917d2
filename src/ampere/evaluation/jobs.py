"""Jobs: pieces of measuring that are done once, kept in a file, and shared by all experiments that need them.

ProfileJob   a profile of one family on one device
TrialsJob    networks that were not profiled, really trained, each measured twice
BlocksJob    networks of an experiment's own, each measured in several shuffled rounds
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import isinf
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ampere.baselines.answers import IN_LOOPS
from ampere.core import TrainingSetup
from ampere.core.measurement import BUSY, WALL
from ampere.devices import VariantDied, VariantFailed
from ampere.estimation.normalization import (
    KNOTS,
    NormalizedCost,
    Reference,
    drift_share_of,
    normalized,
    reference_of,
    to_reference,
    usable,
)
from ampere.models.loading import find_space, need_torch
from ampere.models.spaces import Space
from ampere.profiling.experiment import Experiment
from ampere.profiling.observing import request
from ampere.profiling.running import make_profile
from ampere.profiling.sources import SpaceSource
from ampere.profiling.strategies import find_strategy
from ampere.profiling.strategies.strategy import Goal, Guess
from ampere.storage.checks import YARDSTICK_JOULES, YARDSTICK_SECONDS, check_range, checked
from ampere.storage.files import read_document, write_document
from ampere.storage.profile import Observation, Profile

from .plan import OURS, Plan, Strategy, is_simulated
from .validation import InLoops, Pair, measure_twice, unseen

if TYPE_CHECKING:
    from .session import OpenDevice, Session


Result = TypeVar("Result", covariant=True)
Report = Callable[[float], None]  # the share that is done
Record = dict[str, Any]  # of an experiment, in plain JSON

FORMAT = 2  # of the files of trials and blocks
FILE_SECONDS = 0.5  # for the last fit and the file; starting the device is within the budget
OWN_END_SECONDS = 9.0  # of the paper's method, about, also where it may take longer
SIMULATED_SECONDS = 2.0  # of real time, whatever the simulated clock says
SAMPLE_SECONDS, SIMULATED_SAMPLE_SECONDS = 0.06, 0.01  # of one measurement of an isolated layer
START_SECONDS = 1.0
BLOCK_SECONDS = {"lenet5": 0.06, "cnn5": 0.12, "har": 0.1, "lstm": 0.11, "transformer": 0.27, "resnet": 0.2}
LOOPS_TAKE = 1.8  # times as long as steps between yardstick steps


class Job(Protocol[Result]):
    """Frozen, and equal to another that would measure the same."""

    @property
    def device(self) -> str: ...

    @property
    def name(self) -> str:
        """The name of its file, shown while it runs."""

    @property
    def seconds(self) -> float:
        """About how long it will take."""

    def do(self, session: Session, path: Path, report: Report) -> None:
        """Measures, and leaves the file only when all is measured."""

    def load(self, path: Path) -> Result: ...


def file_name(*parts: object) -> str:
    return "-".join(str(part).replace(":", "-").replace("/", "-") for part in parts if part != "")


@dataclass(frozen=True)
class ProfileJob:
    """A profile of one family on one device, by one method and timing."""

    device: str
    family: str
    budget_seconds: float
    seed: int = 0
    method: str = OURS[0]
    timing: str = OURS[1]
    samples: int = 0  # that it ends at instead of by its seconds, where not 0
    space: Space | None = field(default=None, compare=False)  # of an experiment's own, which the family names

    @property
    def name(self) -> str:
        size = f"{self.samples}n" if self.samples else f"{self.budget_seconds:g}s"
        return file_name("profile", self.device, self.family, self.method, self.timing, size, self.seed)

    @property
    def seconds(self) -> float:
        if self.samples:
            return self.samples * (SIMULATED_SAMPLE_SECONDS if is_simulated(self.device) else SAMPLE_SECONDS)
        if is_simulated(self.device):
            return SIMULATED_SECONDS
        longest = OWN_END_SECONDS if self.method == IN_LOOPS else self.budget_seconds
        return min(longest, self.budget_seconds) + FILE_SECONDS

    def do(self, session: Session, path: Path, report: Report) -> None:
        """Profiles; a stopped run continues from the journal next to the file."""
        need_torch()
        space, device = self.space or find_space(self.family), session.device(self.device)
        make_profile(
            lambda: SpaceSource(space),
            device.setup(threads=1),
            Goal(self.budget_seconds, 0.0, self.samples),
            device,
            path=path,
            seed=self.seed,
            on_progress=lambda p: report(p.elapsed / (OWN_END_SECONDS if isinf(p.seconds) else p.seconds)),
            method=self.method,
            timing=self.timing,
        )

    def load(self, path: Path) -> Profile:
        return Profile.load(path)


def of_family(plan: Plan, device: str, family: str) -> ProfileJob:
    """The profile that most experiments share."""
    return ProfileJob(device, family, plan.profile_seconds(device, family), plan.seed)


def baselines_of(plan: Plan, profile: ProfileJob, of: Sequence[Strategy] = ()) -> tuple[ProfileJob, ...]:
    """The profiles of methods that need measurements of their own, made in as many seconds as Ampere's.

    Those of isolated layers have as many measurements as the plan gives them.
    """
    ways = [way for way in plan.baselines(profile.device, profile.family) if not of or way in of]
    return tuple(
        replace(
            profile, method=way[0], timing=way[1], samples=plan.baseline_samples if find_strategy(*way).stages else 0
        )
        for way in ways
    )


@dataclass(frozen=True)
class TrialsJob:
    """Networks that were not profiled, really trained, each measured twice."""

    profile: ProfileJob
    subject: str  # which networks
    build: Callable[[Profile], Sequence[Experiment]] = field(compare=False)  # traced only when they are measured
    networks: int
    rounds: int
    block_seconds: float
    seed: int = 0
    loops: bool = False  # trained in loops, as the paper's method measures

    @property
    def device(self) -> str:
        return self.profile.device

    @property
    def family(self) -> str:
        return self.profile.family

    @property
    def name(self) -> str:
        loops = "loops" if self.loops else ""
        return file_name("trials", self.device, self.subject, loops, self.networks, f"{self.rounds}r", self.seed)

    @property
    def seconds(self) -> float:
        if is_simulated(self.device):
            return 1.0 + 0.05 * self.networks
        blocks = 2 * self.rounds * self.networks * (LOOPS_TAKE if self.loops else 1.0)
        return START_SECONDS + blocks * self.block_seconds

    def do(self, session: Session, path: Path, report: Report) -> None:
        profile = session.get(self.profile)
        worker = session.open(self.device).worker
        device = InLoops(worker) if self.loops else worker
        pairs = measure_twice(
            self.build(profile), device, profile, self.seed, lambda done, total: report(done / total), self.rounds
        )
        write_document(path, "trials", FORMAT, [[[o.to_json() for o in half] for half in pair] for pair in pairs])

    def load(self, path: Path) -> tuple[Pair, ...]:
        pairs: list[list[list[dict[str, Any]]]] = read_document(path, "trials", FORMAT, oldest_version=FORMAT)
        with checked(str(path)):
            return tuple((_observations(first), _observations(second)) for first, second in pairs)


def _reference(
    seconds: float, joules: float | None, clock: str, after_steps: Sequence[float] = (), in_loops: float = 0.0
) -> Reference:
    check_range("the yardstick's seconds", seconds, YARDSTICK_SECONDS)
    check_range("the yardstick's joules", joules, YARDSTICK_JOULES)
    if clock not in (WALL, BUSY):
        raise ValueError(f"there is no clock {clock!r:.60}")
    if len(after_steps) not in (0, len(KNOTS)) or not all(abs(each) < 2 for each in (*after_steps, in_loops)):
        raise ValueError("how networks slow the yardstick down is malformed")
    return Reference(seconds, joules, clock, tuple(map(float, after_steps)), float(in_loops))


def _observations(records: Sequence[dict[str, Any]]) -> tuple[Observation, ...]:
    return tuple(Observation.from_json(record) for record in records)


def trials_of(plan: Plan, device: str, family: str, repeat: bool = False) -> TrialsJob:
    """Random networks of a family; with `repeat` the same ones, measured another time."""
    count = plan.networks(family)

    def build(profile: Profile) -> list[Experiment]:
        return unseen(SpaceSource(find_space(family)), (profile,), count, plan.seed)

    subject = f"{family}-repeat" if repeat else family
    seconds = BLOCK_SECONDS.get(family, 0.3)
    return TrialsJob(of_family(plan, device, family), subject, build, count, plan.rounds, seconds, plan.seed)


def in_loops(trials: TrialsJob, baselines: Sequence[ProfileJob]) -> list[TrialsJob]:
    """The same networks trained in loops, where the paper's method takes part; simulated ones cost the same so."""
    if is_simulated(trials.device) or all(job.method != IN_LOOPS for job in baselines):
        return []
    return [replace(trials, loops=True, rounds=max(1, trials.rounds // 2))]


def needs(
    trials: Callable[[Plan], Sequence[TrialsJob]],
    baselines: Callable[[Plan, ProfileJob], Sequence[ProfileJob]] = lambda plan, profile: (),
) -> Callable[[Plan], list[Job[Any]]]:
    """Trials, each after the profile that its networks must not be in, and the baselines' own profiles if needed."""

    def jobs(plan: Plan) -> list[Job[Any]]:
        found: list[Job[Any]] = []
        for trial in trials(plan):
            others = baselines(plan, trial.profile)
            found += [trial.profile, trial, *others, *in_loops(trial, others)]
        return found

    return jobs


@dataclass(frozen=True)
class BlocksJob:
    """Networks of an experiment's own, each measured in several shuffled rounds."""

    device: str
    subject: str  # what is measured
    build: Callable[[], Sequence[Experiment]] = field(compare=False)  # only when it is measured
    count: int
    rounds: int
    block_seconds: float
    profile: ProfileJob | None = None  # at whose speed figures are given, where they are compared with its estimates
    threads: int = 1

    @property
    def name(self) -> str:
        threads = f"{self.threads}t" if self.threads > 1 else ""
        return file_name("blocks", self.device, self.subject, self.count, f"{self.rounds}r", threads)

    @property
    def seconds(self) -> float:
        if is_simulated(self.device):
            return 1.0 + 0.01 * self.count
        return START_SECONDS + self.rounds * self.count * self.block_seconds

    def do(self, session: Session, path: Path, report: Report) -> None:
        opened, experiments = session.open(self.device, self.threads), self.build()
        if self.profile is not None:
            opened = replace(opened, reference=reference_of(session.get(self.profile)))
        seen: list[list[Observation]] = [[] for _ in experiments]
        rng, guess, done = Random(self.name), Guess(), 0
        for _ in range(self.rounds):
            for i in rng.sample(range(len(experiments)), len(experiments)):
                seen[i] += _measured(experiments[i], opened, guess, self.threads)
                done += 1
                report(done / (self.rounds * len(experiments)))
        rounds = [[o.to_json() for o in each] for each in seen]
        write_document(path, "blocks", FORMAT, {"reference": list(opened.reference), "rounds": rounds})

    def load(self, path: Path) -> tuple[NormalizedCost | None, ...]:
        """What each network costs at one speed of the machine; None where it could not be trained."""
        body = read_document(path, "blocks", FORMAT, oldest_version=FORMAT)
        with checked(str(path)):
            reference = _reference(*body["reference"])
            costs = [next(iter(normalized(_observations(rounds), reference)), None) for rounds in body["rounds"]]
        share = drift_share_of([cost for cost in costs if cost]).part
        return tuple(cost and to_reference(cost, reference, share) for cost in costs)


def _measured(experiment: Experiment, on: OpenDevice, guess: Guess, threads: int) -> list[Observation]:
    needed = request(experiment, TrainingSetup(threads=threads), guess.seconds(experiment.network), thorough=True)
    try:
        found = on.worker.block(**needed)
    except (VariantDied, VariantFailed):
        return []
    if not usable(found, on.reference):
        return []
    guess.learn(experiment.observed(found))
    return [experiment.observed(found)]
