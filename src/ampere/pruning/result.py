"""The result of pruning: a model with fewer channels, and each layer before and after."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ampere.core import Network, units
from ampere.core.display import frame, html_table
from ampere.estimation.estimate import Estimate
from ampere.estimation.memory import MemoryEstimate
from ampere.models.loading import LoadedModel

if TYPE_CHECKING:
    from torch import nn


class LayerChange(NamedTuple):
    name: str
    kind: str
    channels_before: tuple[int, int]  # in, out
    channels_after: tuple[int, int]
    joules_before: float
    joules_after: float


class Width(NamedTuple):
    group: str
    before: int
    after: int


class Measured(NamedTuple):
    """What an iteration of original and result really costs, trained in turn."""

    joules_before: float
    joules_after: float
    share_relative_stddev: float
    rounds: int

    @property
    def share(self) -> float:
        return self.joules_after / self.joules_before

    def to_json(self) -> dict[str, float]:
        return {**self._asdict(), "share": self.share}


@dataclass(frozen=True)
class Pruned:
    """A model that trains inside a budget, by measurement or else by estimate, and the change of each layer."""

    model: nn.Module
    strategy: str
    budget_joules: float  # of an iteration
    confidence: float  # with which the budget is to hold
    networks: tuple[Network, Network]  # before, after
    before: Estimate
    after: Estimate
    bound_joules: float  # the measurement, or else the estimate, stays below it with that confidence
    widths: tuple[Width, ...]
    fixed: tuple[str, ...]  # layers that could not change, each with the reason
    original: LoadedModel = field(repr=False)  # the model that was pruned, and its inputs
    measured: Measured | None = None  # where original and result were trained to check the budget
    unmeasured: str = ""  # why they were not
    written: tuple[Path, ...] = ()  # the files of the pruned model
    memory: MemoryEstimate | None = None  # of the result, where a budget of memory was given

    @property
    def share(self) -> float:
        """The result's energy as a share of the original's, measured or else estimated."""
        return self.measured.share if self.measured else self.after.joules / self.before.joules

    @property
    def inside(self) -> bool:
        return self.bound_joules <= self.budget_joules

    @property
    def headline(self) -> str:
        """`cnn5: 12.1 mJ -> 6.02 mJ an iteration, 50 % (energy, measured)`."""
        before, after = self.before.joules, self.after.joules
        if self.measured:
            before, after = self.measured.joules_before, self.measured.joules_after
        origin = "measured" if self.measured else "estimated"
        joules = f"{units.joules(before)} -> {units.joules(after)} an iteration"
        return f"{self.before.network or 'network'}: {joules}, {units.percent(self.share)} ({self.strategy}, {origin})"

    def save(self, path: Path | str) -> list[Path]:
        """Writes the pruned model to `path`, which ends in .json or .pt2; the files that were written.

        `ampere.load_pruned` reads the .json, `torch.export.load` the .pt2.
        """
        from .saving import save

        return save(self, Path(path))

    def layers(self) -> Iterator[LayerChange]:
        shares = zip(self.before.layers, self.after.layers, strict=True)  # the last is the step's own
        layers = zip(self.networks[0].layers, self.networks[1].layers, strict=True)
        for (old, new), (cost, left) in zip(layers, shares, strict=False):
            channels = (old.channels_in, old.channels_out), (new.channels_in, new.channels_out)
            yield LayerChange(old.name, old.kind, *channels, cost.joules, left.joules)

    def to_json(self) -> dict[str, Any]:
        return {
            "strategy": self.strategy,
            "budget_joules": self.budget_joules,
            "confidence": self.confidence,
            "inside_budget": self.inside,
            "bound_joules": self.bound_joules,
            "share": self.share,
            "measured": self.measured.to_json() if self.measured else None,
            "memory": self.memory.to_json() if self.memory else None,
            "before": self.before.to_json(),
            "after": self.after.to_json(),
            "widths": [width._asdict() for width in self.widths],
            "layers": [change._asdict() for change in self.layers()],
            "fixed": list(self.fixed),
        }

    def rows(self) -> list[dict[str, Any]]:
        """One record for each layer, before and after."""
        return [
            {
                "layer": change.name,
                "kind": change.kind,
                "channels_before": change.channels_before[1],
                "channels_after": change.channels_after[1],
                "joules_before": change.joules_before,
                "joules_after": change.joules_after,
            }
            for change in self.layers()
        ]

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row for each layer."""
        return frame(self.rows())

    def _repr_html_(self) -> str:
        return html_table(self.headline, self.rows())
