"""Blocks: networks of an experiment's own, each measured in several shuffled rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from ampere.core import TrainingSetup
from ampere.devices import VariantDied, VariantFailed
from ampere.estimation.normalization import drift_share_of, to_reference
from ampere.profiling.experiment import Experiment
from ampere.profiling.observing import merged, observation, request
from ampere.profiling.strategies.strategy import Guess
from ampere.storage.files import read_document, write_document
from ampere.storage.profile import Observation

from .job import Report, file_name
from .plan import is_simulated
from .profile_job import ProfileJob

if TYPE_CHECKING:
    from .lab import Lab, OpenDevice

KIND, FORMAT = "blocks", 1
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

    def do(self, lab: Lab, path: Path, report: Report) -> None:
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
        write_document(path, KIND, FORMAT, [o.to_json() if o else None for o in _referred(seen, opened)])

    def load(self, path: Path) -> tuple[Observation | None, ...]:
        """None is a place that stays empty: what could not be trained is shown as missing."""
        return tuple(r and Observation.from_json(r) for r in read_document(path, KIND, FORMAT))


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
