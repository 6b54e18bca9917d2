"""A network is the layers of one training step, in the order in which they run."""

import math
from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Tuple

from .layer import Layer

FORMAT = 1


@dataclass(frozen=True)
class Network:
    """All layers of one training step at one batch size; what estimates are made of."""

    layers: Tuple[Layer, ...]
    batch: int
    name: str = ""
    notes: Tuple[str, ...] = field(default=(), compare=False)  # what the tracer wants people to know

    @property
    def distinct(self) -> Dict[Layer, int]:
        """Each different layer once, with how often it runs."""
        counts: Dict[Layer, int] = {}
        for layer in self.layers:
            counts[layer] = counts.get(layer, 0) + 1
        return counts

    def renamed(self, name: str) -> "Network":
        return replace(self, name=name)

    def to_json(self) -> Dict[str, Any]:
        return {
            "format": FORMAT,
            "name": self.name,
            "batch": self.batch,
            "layers": [layer.to_json() for layer in self.layers],
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, record: Dict[str, Any]) -> "Network":
        layers = tuple(Layer.from_json(layer) for layer in record["layers"])
        _refuse_nonsense(layers)
        return cls(layers, int(record["batch"]), str(record.get("name", "")), tuple(map(str, record.get("notes", ()))))


def _refuse_nonsense(layers: Tuple[Layer, ...]) -> None:
    numbers: List[float] = []
    for layer in layers:
        numbers += [layer.channels_in, layer.channels_out]
        for tail in layer.tail:
            numbers += [tail.values_in, tail.values_out]
    if any(not math.isfinite(n) or n < 0 or n > 1e15 for n in numbers):
        raise ValueError("a layer has a size that is negative, infinite or absurd")
