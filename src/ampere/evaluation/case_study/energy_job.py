"""One seed's energy: pruned to half in two ways, then all three measured side by side.

profile -> pruned by ours, which is measured and corrected -> pruned by FLOPs -> all three in shuffled rounds, twice
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampere.core.errors import AmpereError
from ampere.devices import Worker
from ampere.estimation.estimate import Estimator
from ampere.evaluation.job import Report, file_name
from ampere.evaluation.plan import is_simulated
from ampere.evaluation.profile_job import ProfileJob
from ampere.pruning.checking import joules_of
from ampere.storage.files import read_document, write_document
from ampere.validation.validate import measure_twice

from .subject import CHANNELS, FLOPS, ORIGINAL, OURS, channels_of, experiment, pruned

if TYPE_CHECKING:
    from ampere.evaluation.lab import Lab

KIND, FORMAT = "case_energy", 1
ROUND_SECONDS, PRUNING_SECONDS = 0.3, 18.0  # of all three models; with its checks


@dataclass(frozen=True)
class EnergyJob:
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

    def do(self, lab: Lab, path: Path, report: Report) -> None:
        profile, device = lab.get(self.profile), lab.open(self.device).device
        estimator = Estimator(profile)
        models: dict[str, dict[str, Any]] = {ORIGINAL: {"channels": CHANNELS}}
        for way in (OURS, FLOPS):
            models[way] = _chosen(self.seed, way, estimator, device)
            report(0.5)
        known = {name: experiment(model["channels"]) for name, model in models.items() if "channels" in model}
        pairs = measure_twice(list(known.values()), device, profile, self.seed, _half(report), self.rounds)
        for name, pair in zip(known, pairs, strict=True):
            seen = joules_of(estimator, *(o.measurement for o in pair))
            models[name]["joules"], models[name]["joules_again"] = seen
        meter = profile.meter.to_json()
        write_document(path, KIND, FORMAT, {"meter": meter, "models": models})

    def load(self, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = read_document(path, KIND, FORMAT)
        return found


def _chosen(seed: int, way: str, estimator: Estimator, device: Worker) -> dict[str, Any]:
    """Channels, what pruning knew of them, or why there are none."""
    try:
        found = pruned(seed, way, estimator, device)
    except AmpereError as error:
        return {"failed": str(error)}
    checked = {} if found.measured is None else {"checked_share": found.measured.share}
    estimated = {"estimated_joules": found.after.joules, "estimated_stddev": found.after.stddev}
    return {"channels": channels_of(found), **estimated, **checked}


def _half(report: Report) -> Callable[[int, int], None]:
    return lambda done, total: report(0.5 + 0.5 * done / total)
