"""What pruning leaves: a model, and each layer before and after."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ampere.core import Network
from ampere.estimation.estimate import Estimate

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
    """What original and result really cost an iteration, trained in turn."""

    joules_before: float
    joules_after: float
    share_doubt: float  # one standard deviation of the share, relative
    rounds: int

    @property
    def share(self) -> float:
        return self.joules_after / self.joules_before

    def to_json(self) -> dict[str, float]:
        return {**self._asdict(), "share": self.share}


@dataclass(frozen=True)
class Pruned:
    """A model that trains inside a budget, as far as was measured or else estimated, and what became of each layer."""

    model: nn.Module
    strategy: str
    budget_joules: float  # of an iteration
    confidence: float  # with which the budget was to hold
    networks: tuple[Network, Network]  # before, after
    before: Estimate
    after: Estimate
    bound_joules: float  # what the measurement, or else the estimate, stays below with that confidence
    widths: tuple[Width, ...]
    fixed: tuple[str, ...]  # layers that could not change, each with the reason
    measured: Measured | None = None  # where original and result were trained to see
    unmeasured: str = ""  # why they were not
    written: tuple[Path, ...] = ()  # the files of the pruned model

    @property
    def share(self) -> float:
        """Of the original's energy, measured or else estimated."""
        return self.measured.share if self.measured else self.after.joules / self.before.joules

    @property
    def inside(self) -> bool:
        return self.bound_joules <= self.budget_joules

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
            "before": self.before.to_json(),
            "after": self.after.to_json(),
            "widths": [width._asdict() for width in self.widths],
            "layers": [change._asdict() for change in self.layers()],
            "fixed": list(self.fixed),
        }
