"""Experiments: networks that can be trained and measured, as the surrogate sees them and as the worker builds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from ampere.core import KINDS, Layer, Measurement, Network
from ampere.core.wiring import as_built
from ampere.storage.profile import Observation

Workload = Mapping[str, Any]  # how the worker builds a network: from layers, or with a factory


@dataclass(frozen=True)
class Experiment:
    """A network to train and measure once."""

    network: Network
    workload: Workload
    purpose: str  # layer, variant, network, opaque, stage, kernel
    allocator: str = "tuned"
    stage: str = "step"  # the part of a step that is timed

    @property
    def system(self) -> bool:
        """Whether it is trained with the system's allocator."""
        return self.allocator == "system"

    def observed(self, measurement: Measurement) -> Observation:
        """The observation of this experiment with this measurement."""
        return Observation(self.network, measurement, self.purpose, self.stage)

    def under(self, allocator: str) -> Experiment:
        """The same experiment with another allocator."""
        return replace(self, allocator=allocator)


def of_layers(layers: Sequence[Layer], batch: int) -> Experiment:
    """A small network of a few layers, trained on the mean square of its output."""
    purpose = "layer" if len(layers) == 1 else "variant"
    return from_layers(Network(tuple(layers), batch), purpose)


def from_layers(network: Network, purpose: str) -> Experiment:
    """The network built from the description of its layers, and described as what that amounts to."""
    return Experiment(as_built(network), {"layers": network.to_json()}, purpose)


def slices(network: Network, rng: Random, count: int) -> list[Experiment]:
    """Random variants: one, two or three consecutive layers of a network, at most `count` of them."""
    found = []
    for _ in range(count):
        length = rng.choice((1, 1, 2, 3))
        start = rng.randrange(max(1, len(network.layers) - length + 1))
        layers = network.layers[start : start + length]
        if all(KINDS[layer.kind].has_surface for layer in layers) and any(layer.trainable for layer in layers):
            found.append(of_layers(layers, network.batch))
    return found
