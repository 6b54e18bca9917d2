"""A network as data: the layers of one training step in the order in which they run, and what goes into it."""

import math
from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ampere.core.kinds import KINDS
from ampere.core.kinds.kind import product

from .allocations import FreshPages
from .layer import Layer
from .trailing_ops import mean_of_squares

FORMAT = 2  # 1 called a layer's trailing operations `tail`, and its nonparametric kind `glue`


@dataclass(frozen=True)
class Network:
    """All layers of one training step at one batch size; what estimates are made of."""

    layers: Tuple[Layer, ...]
    batch: int
    name: str = ""
    notes: Tuple[str, ...] = field(default=(), compare=False)  # what people should know of the trace
    fresh_pages: Optional[FreshPages] = field(default=None, compare=False)  # where its memory was followed

    @property
    def distinct(self) -> Dict[Layer, int]:
        """Each different layer once, with how often it runs."""
        counts: Dict[Layer, int] = {}
        for layer in self.layers:
            counts[layer] = counts.get(layer, 0) + 1
        return counts

    def __hash__(self) -> int:
        """Kept, because networks of many layers are looked up often."""
        known = self.__dict__.get("_hash")
        if known is None:
            known = hash((self.layers, self.batch, self.name))
            object.__setattr__(self, "_hash", known)
        return int(known)

    def renamed(self, name: str) -> "Network":
        return replace(self, name=name)

    def to_json(self) -> Dict[str, Any]:
        record = {
            "format": FORMAT,
            "name": self.name,
            "batch": self.batch,
            "layers": [layer.to_json() for layer in self.layers],
            "notes": list(self.notes),
        }
        return record if self.fresh_pages is None else {**record, "fresh_pages": list(self.fresh_pages)}

    @classmethod
    def from_json(cls, record: Dict[str, Any]) -> "Network":
        layers = tuple(Layer.from_json(layer) for layer in record["layers"])
        pages = FreshPages(*map(float, record["fresh_pages"])) if "fresh_pages" in record else None
        _refuse_nonsense(layers, pages or ())
        notes = tuple(map(str, record.get("notes", ())))
        return cls(layers, int(record["batch"]), str(record.get("name", "")), notes, pages)


def _refuse_nonsense(layers: Tuple[Layer, ...], others: Sequence[float]) -> None:
    numbers: List[float] = [*others]
    for layer in layers:
        numbers += [layer.channels_in, layer.channels_out]
        for op in layer.trailing:
            numbers += [op.values_in, op.values_out, op.weight]
    if any(not math.isfinite(n) or n < 0 or n > 1e15 for n in numbers):
        raise ValueError("a size is negative, infinite or absurd")


@dataclass(frozen=True)
class InputSpec:
    """One tensor that goes into a model: its shape, its type and, for token ids, how large they may be."""

    shape: Tuple[int, ...]
    dtype: str = "float32"
    high: Optional[int] = None  # whole numbers are below it

    def __str__(self) -> str:
        kind = "" if self.dtype == "float32" else ":" + self.dtype
        limit = "" if self.high is None else f"<{self.high}"
        return "x".join(map(str, self.shape)) + kind + limit

    def to_json(self) -> Dict[str, Any]:
        return {"shape": list(self.shape), "dtype": self.dtype, "high": self.high}

    @classmethod
    def from_json(cls, record: Dict[str, Any]) -> "InputSpec":
        high = record.get("high")
        shape = tuple(int(n) for n in record["shape"])
        return cls(shape, str(record["dtype"]), None if high is None else int(high))


def with_loss(layers: Sequence[Layer]) -> Tuple[Layer, ...]:
    """The layers as they run in a variant: the last one's output is squared and averaged."""
    last = layers[-1]
    values = float(last.trailing[-1].values_out if last.trailing else product(KINDS[last.kind].shape_out(last)))
    return (*layers[:-1], replace(last, trailing=last.trailing + mean_of_squares(values)))
