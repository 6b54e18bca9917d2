"""The jobs of the case study, for each seed: prune and measure, then train all three models.

profile -> pruned by energy, measured and corrected -> pruned by FLOPs -> all three in shuffled rounds, twice -> trained
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampere.core.errors import AmpereError
from ampere.devices import Worker
from ampere.estimation.estimate import Estimator
from ampere.evaluation.jobs import ProfileJob, Report, file_name
from ampere.evaluation.plan import is_simulated
from ampere.evaluation.validation import cost_of, measure_twice
from ampere.pruning.checking import joules_of
from ampere.storage.files import read_document, write_document

from .images import name_of, task
from .model import BATCH, CHANNELS, FLOPS, ORIGINAL, OURS, arguments, channels_of, experiment, pruned, train

if TYPE_CHECKING:
    from ampere.evaluation.session import Session


ENERGY, TRAINING, FORMAT = "case_energy", "case_training", 1
ROUND_SECONDS, PRUNING_SECONDS = 0.3, 18.0  # of all three models; with its checks
ITERATION_SECONDS, TEST_SECONDS = 0.02, 5.0  # of all three models


@dataclass(frozen=True)
class EnergyJob:
    """One seed's energy: pruned to half in two ways, then all three measured in turn."""

    profile: ProfileJob
    seed: int
    rounds: int

    @property
    def device(self) -> str:
        return self.profile.device

    @property
    def name(self) -> str:
        return file_name("case-energy", self.device, f"{CHANNELS[-1]}c", f"{self.rounds}r", self.seed)

    @property
    def seconds(self) -> float:
        return 2.0 if is_simulated(self.device) else PRUNING_SECONDS + 2 * self.rounds * ROUND_SECONDS

    def do(self, session: Session, path: Path, report: Report) -> None:
        profile, device = session.get(self.profile), session.open(self.device).worker
        estimator = Estimator(profile)
        models: dict[str, dict[str, Any]] = {ORIGINAL: {"channels": CHANNELS}}
        for way in (OURS, FLOPS):
            models[way] = _chosen(self.seed, way, estimator, device)
            report(0.5)
        known = {name: experiment(model["channels"]) for name, model in models.items() if "channels" in model}
        pairs = measure_twice(list(known.values()), device, profile, self.seed, _half(report), self.rounds)
        for name, pair in zip(known, pairs, strict=True):
            seen = joules_of(estimator, *(cost_of(rounds, profile) for rounds in pair))
            models[name]["joules"], models[name]["joules_repeat"] = seen
        meter = profile.meter.to_json()
        write_document(path, ENERGY, FORMAT, {"meter": meter, "models": models})

    def load(self, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = read_document(path, ENERGY, FORMAT)
        return found


def _chosen(seed: int, way: str, estimator: Estimator, device: Worker) -> dict[str, Any]:
    """The channels that pruning chose and its estimate of them, or why there are none."""
    try:
        found = pruned(seed, way, estimator, device)
    except AmpereError as error:
        return {"failed": str(error)}
    checked = {} if found.measured is None else {"checked_share": found.measured.share}
    estimated = {"estimated_joules": found.after.joules, "estimated_stddev": found.after.stddev}
    return {"channels": channels_of(found), **estimated, **checked}


def _half(report: Report) -> Callable[[int, int], None]:
    return lambda done, total: report(0.5 + 0.5 * done / total)


@dataclass(frozen=True)
class TrainingJob:
    """One seed's training: the original and both pruned models from first weights, on the same images in order."""

    energy: EnergyJob
    iterations: int
    images: tuple[int, int]  # to learn from, to be tested on
    celeba: str = ""

    @property
    def device(self) -> str:
        return self.energy.device

    @property
    def name(self) -> str:
        run = f"{CHANNELS[-1]}c", f"{self.iterations}i", self.energy.seed
        return file_name("case-training", self.device, name_of(self.celeba), *run)

    @property
    def seconds(self) -> float:
        return ITERATION_SECONDS * self.iterations + TEST_SECONDS

    def do(self, session: Session, path: Path, report: Report) -> None:
        """On this machine, whatever the device: accuracy is the same everywhere."""
        import torch

        from ampere.models.cnn5 import build

        seed = self.energy.seed
        models = {name: m for name, m in session.get(self.energy)["models"].items() if "channels" in m}
        images, found = task(self.celeba, seed, *self.images), {}
        for place, (name, model) in enumerate(models.items()):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                fresh, _ = build(**arguments(model["channels"]))

            def part(share: float, place: int = place) -> None:
                report((place + share) / len(models))

            found[name] = train(fresh, images, self.iterations, BATCH, seed, part).to_json()
        write_document(path, TRAINING, FORMAT, found)

    def load(self, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = read_document(path, TRAINING, FORMAT)
        return found
