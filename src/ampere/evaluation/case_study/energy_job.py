"""One seed's energy: the original measured, pruned to half of that in two ways, then all three measured side by side.

profile -> original, measured -> pruned by ours, pruned by FLOPs -> original, ours, FLOPs in shuffled rounds, twice
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampere.errors import AmpereError
from ampere.estimation import Estimator
from ampere.fitting import sharing_in
from ampere.profiles.files import read_document, write_document
from ampere.profiles.profile import Observation, Profile
from ampere.profiling.merging import merged
from ampere.validation import measure_twice
from ampere.yardstick import in_reference

from ..job import Report, file_name
from ..plan import is_simulated
from ..profile_job import ProfileJob
from .subject import CHANNELS, FLOPS, ORIGINAL, OURS, SHARE, experiment, pruned

if TYPE_CHECKING:
    from ..lab import Lab

KIND, FORMAT = "case_energy", 1
ROUND_SECONDS, OTHER_SECONDS = 0.5, 2.0  # of all three models; of pruning


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
        return file_name("case-energy", self.device, f"{self.rounds}r", self.seed)

    @property
    def seconds(self) -> float:
        return OTHER_SECONDS + (0.0 if is_simulated(self.device) else 3 * self.rounds * ROUND_SECONDS)

    def do(self, lab: Lab, path: Path, report: Report) -> None:
        profile, device = lab.get(self.profile), lab.open(self.device).device
        whole, joules = experiment(CHANNELS), _joules_in(profile)
        ((first, again),) = measure_twice(
            [whole], device, profile, self.seed, _part(report, 0.0, 0.2), self.rounds // 2
        )
        seen = merged([first, again])[0]
        budget = SHARE * joules(seen)
        estimator = Estimator(replace(profile, observations=(*profile.observations, seen)))
        models: dict[str, dict[str, Any]] = {ORIGINAL: {"channels": CHANNELS}}
        for way in (OURS, FLOPS):
            models[way] = _chosen(self.seed, way, estimator, budget)
        known = {name: experiment(model["channels"]) for name, model in models.items() if "channels" in model}
        pairs = measure_twice(list(known.values()), device, profile, self.seed, _part(report, 0.2, 1.0), self.rounds)
        for name, pair in zip(known, pairs, strict=True):
            models[name]["joules"], models[name]["joules_again"] = map(joules, pair)
        meter = profile.meter.to_json()
        write_document(path, KIND, FORMAT, {"budget_joules": budget, "meter": meter, "models": models})

    def load(self, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = read_document(path, KIND, FORMAT)
        return found


def _chosen(seed: int, way: str, estimator: Estimator, budget: float) -> dict[str, Any]:
    """Channels in the order of the model's layers, or why there are none."""
    try:
        found = pruned(seed, way, estimator, budget)
    except AmpereError as error:
        return {"failed": str(error)}
    channels = [layer.channels_after[1] for layer in found.layers() if layer.kind.startswith("conv")]
    return {"channels": channels, "estimated_joules": found.after.joules, "estimated_stddev": found.after.stddev}


def _joules_in(profile: Profile) -> Callable[[Observation], float]:
    """An iteration's, as it would have been when the device was profiled."""
    sharing = sharing_in(profile.observations, profile.yardstick_seconds).part
    return lambda seen: in_reference(seen.measurement, profile.yardstick_seconds, sharing).joules


def _part(report: Report, begin: float, end: float) -> Any:
    return lambda done, total: report(begin + (end - begin) * done / total)
