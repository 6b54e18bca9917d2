"""One seed's training: the original and both pruned models from first weights, on the same images in the same order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampere.evaluation.job import Report, file_name
from ampere.storage.files import read_document, write_document

from .energy_job import EnergyJob
from .images import name_of, task
from .subject import BATCH, CHANNELS, arguments
from .training import train

if TYPE_CHECKING:
    from ampere.evaluation.lab import Lab

KIND, FORMAT = "case_training", 1
ITERATION_SECONDS, TEST_SECONDS = 0.02, 5.0  # of all three models


@dataclass(frozen=True)
class TrainingJob:
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

    def do(self, lab: Lab, path: Path, report: Report) -> None:
        """On this machine, whatever the device: accuracy is the same everywhere."""
        import torch

        from ampere.models.cnn5 import build

        seed = self.energy.seed
        models = {name: m for name, m in lab.get(self.energy)["models"].items() if "channels" in m}
        images, found = task(self.celeba, seed, *self.images), {}
        for place, (name, model) in enumerate(models.items()):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                fresh, _ = build(**arguments(model["channels"]))

            def part(share: float, place: int = place) -> None:
                report((place + share) / len(models))

            found[name] = train(fresh, images, self.iterations, BATCH, seed, part).to_json()
        write_document(path, KIND, FORMAT, found)

    def load(self, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = read_document(path, KIND, FORMAT)
        return found
