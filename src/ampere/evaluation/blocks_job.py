"""Blocks: networks of an experiment's own, each measured in several shuffled rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from ampere.devices import VariantDied, VariantFailed
from ampere.network import Meter, TrainingSetup
from ampere.profiles.files import read_document, write_document
from ampere.profiles.profile import Observation
from ampere.profiling.experiment import Experiment
from ampere.profiling.merging import merged
from ampere.profiling.observing import observation
from ampere.yardstick import in_reference, sharing_of

from .job import Report, file_name
from .plan import is_simulated

if TYPE_CHECKING:
    from .lab import Lab

KIND, FORMAT = "blocks", 1
ITERATIONS, WARMUP, START_SECONDS, YARDSTICK_SECONDS = 8, 3, 3.0, 0.5


@dataclass(frozen=True)
class BlocksJob:
    device: str
    subject: str  # what is measured, in a word
    build: Callable[[], Sequence[Experiment]] = field(compare=False)  # traced only when it is measured
    count: int
    rounds: int
    block_seconds: float

    @property
    def name(self) -> str:
        return file_name("blocks", self.device, self.subject, self.count, f"{self.rounds}r")

    @property
    def seconds(self) -> float:
        if is_simulated(self.device):
            return 1.0 + 0.01 * self.count
        return START_SECONDS + self.rounds * self.count * self.block_seconds

    def do(self, lab: Lab, path: Path, report: Report) -> None:
        device = lab.open(self.device)["tuned"]
        meter = Meter(**device.hello()["meter"])
        yardstick = device.yardstick(YARDSTICK_SECONDS)
        nominal = yardstick.cpu_seconds
        experiments = list(self.build())
        seen: dict[int, list[Observation]] = {i: [] for i in range(len(experiments))}
        rng, done = Random(self.name), 0
        for _ in range(self.rounds):
            for i in rng.sample(range(len(experiments)), len(experiments)):
                seen[i] += self._measured(experiments[i], device, meter, (nominal, yardstick.joules))
                done += 1
                report(done / (self.rounds * len(experiments)))
        write_document(path, KIND, FORMAT, [o.to_json() if o else None for o in _referred(seen, nominal)])

    def _measured(
        self, experiment: Experiment, device: Any, meter: Meter, nominal: tuple[float, float | None]
    ) -> list[Observation]:
        how = {"iterations": ITERATIONS, "warmup": WARMUP, "pairing": "step", "isolation": "inline"}
        try:
            block = device.block(experiment.subject, TrainingSetup(), **how)
        except (VariantDied, VariantFailed):
            return []  # a place in the list that stays empty: what could not be trained is shown as missing
        found = observation(experiment, block, meter, *nominal)
        return [] if found is None else [found]

    def load(self, path: Path) -> tuple[Observation | None, ...]:
        return tuple(r and Observation.from_json(r) for r in read_document(path, KIND, FORMAT))


def _referred(seen: dict[int, list[Observation]], nominal: float) -> list[Observation | None]:
    """All at the same speed of the machine."""
    together = [merged(rounds)[0] if rounds else None for rounds in seen.values()]
    sharing = sharing_of([o.measurement for o in together if o])
    return [o and replace(o, measurement=in_reference(o.measurement, nominal, sharing)) for o in together]
