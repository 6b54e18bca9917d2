"""The jobs of the case study, for each seed: prune in every way and measure, then train all models.

profile -> pruned at random by estimates and by FLOPs, unchecked and checked -> pruned by our closed loop
        -> all in shuffled rounds, twice -> trained
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampere.core.errors import AmpereError
from ampere.devices import Worker
from ampere.estimation.estimator import Estimator
from ampere.evaluation.jobs import ProfileJob, Report, file_name
from ampere.evaluation.plan import is_simulated
from ampere.evaluation.validation import cost_of, measure_twice
from ampere.pruning.checking import joules_of
from ampere.storage.files import read_document, write_document

from .images import Kind, kind_of, name_of, task
from .model import BATCH, CHANNELS, ORIGINAL, WAYS, Way, built, channels_of, experiment, pruned, train

if TYPE_CHECKING:
    from ampere.evaluation.session import Session


ENERGY, TRAINING, FORMAT = "case_energy", "case_training", 2
ROUND_SECONDS, PRUNING_SECONDS, SIMULATED_SECONDS = 0.6, 60.0, 12.0  # of all models; with checks; of this machine
ITERATION_SECONDS, TEST_SECONDS = 0.023, 6.0  # of all models


@dataclass(frozen=True)
class EnergyJob:
    """One seed's energy: pruned to half in every way, then all measured in turn."""

    profile: ProfileJob
    seed: int
    rounds: int
    data: str = field(default="", compare=False)  # which images; the profile's family says of what size

    @property
    def device(self) -> str:
        return self.profile.device

    @property
    def name(self) -> str:
        return file_name(
            "case-energy", self.device, self.profile.family, f"{CHANNELS[-1]}c", f"{self.rounds}r", self.seed
        )

    @property
    def seconds(self) -> float:
        return SIMULATED_SECONDS if is_simulated(self.device) else PRUNING_SECONDS + 2 * self.rounds * ROUND_SECONDS

    def do(self, session: Session, path: Path, report: Report) -> None:
        profile, device = session.get(self.profile), session.open(self.device).worker
        estimator, kind = Estimator(profile), kind_of(self.data)
        models: dict[str, dict[str, Any]] = {ORIGINAL: {"channels": CHANNELS}}
        for number, (name, way) in enumerate(WAYS.items()):
            report(0.5 * number / len(WAYS))
            models[name] = _chosen(kind, self.seed, way, estimator, device)
        known = {name: experiment(kind, model["channels"]) for name, model in models.items() if "channels" in model}
        pairs = measure_twice(list(known.values()), device, profile, self.seed, _half(report), self.rounds)
        for name, pair in zip(known, pairs, strict=True):
            seen = joules_of(estimator, *(cost_of(rounds, profile) for rounds in pair))
            models[name]["joules"], models[name]["joules_repeat"] = seen
        meter = profile.meter.to_json()
        write_document(path, ENERGY, FORMAT, {"meter": meter, "models": models})

    def load(self, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = read_document(path, ENERGY, FORMAT)
        return found


def _chosen(kind: Kind, seed: int, way: Way, estimator: Estimator, device: Worker) -> dict[str, Any]:
    """The channels that pruning chose and its estimate of them, or why there are none."""
    try:
        found = pruned(kind, seed, way, estimator, device)
    except AmpereError as error:
        return {"failed": str(error)}
    checked = {} if found.measured is None else {"checked_share": found.measured.share}
    estimated = {"estimated_joules": found.after.joules, "estimated_stddev": found.after.stddev}
    return {"channels": channels_of(found), **estimated, **checked}


def _half(report: Report) -> Callable[[int, int], None]:
    return lambda done, total: report(0.5 + 0.5 * done / total)


@dataclass(frozen=True)
class TrainingJob:
    """One seed's training: the original and all pruned models from first weights, on the same images in order."""

    energy: EnergyJob
    iterations: int
    images: tuple[int, int]  # to learn from, to be tested on

    @property
    def device(self) -> str:
        return self.energy.device

    @property
    def name(self) -> str:
        run = f"{CHANNELS[-1]}c", f"{self.iterations}i", self.energy.seed
        return file_name("case-training", self.device, name_of(self.energy.data), *run)

    @property
    def seconds(self) -> float:
        return ITERATION_SECONDS * self.iterations + TEST_SECONDS

    def do(self, session: Session, path: Path, report: Report) -> None:
        """On this machine, whatever the device: accuracy is the same everywhere."""
        seed, data = self.energy.seed, self.energy.data
        models = {name: m for name, m in session.get(self.energy)["models"].items() if "channels" in m}
        images, found = task(data, seed, *self.images), {}
        for place, (name, model) in enumerate(models.items()):
            fresh, _ = built(kind_of(data), model["channels"], seed)

            def part(share: float, place: int = place) -> None:
                report((place + share) / len(models))

            found[name] = train(fresh, images, self.iterations, BATCH, seed, part).to_json()
        write_document(path, TRAINING, FORMAT, found)

    def load(self, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = read_document(path, TRAINING, FORMAT)
        return found
