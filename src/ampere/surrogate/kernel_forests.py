"""A forest for each kind of operation and each stage of it, over the operation's configuration."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ampere.network import KINDS, Layer, work
from ampere.network.kinds import USUAL_WIDTH

from .features import Array, is_waste
from .forest import Forest, grow_forest

ANY = "any"  # a kind that was never seen is judged by what all operations have


def operation_kind(operation: Layer) -> str:
    """What shares a forest: a layer kind, or a class of operations of tails."""
    return f"tail.{operation.tail[0].op}" if operation.kind == "glue" else operation.kind


def configuration(layer: Layer) -> tuple[float, ...]:
    """Sizes as a user would name them: channels, places, kernel, stride, batch..."""
    if layer.kind == "glue" and "size" in layer.config:
        size = layer.config["size"]
        return float(layer.config["batch"]), float(np.prod(size)), float(np.prod(size[1:]))
    told = KINDS[layer.kind].coordinates(layer, USUAL_WIDTH)
    waste = is_waste(layer.kind, len(told))
    return tuple(float(size) for size, wasted in zip(told, waste, strict=True) if not wasted)


def amounts(layer: Layer) -> tuple[float, ...]:
    """Arithmetic, memory moved and parameters, which every operation has."""
    asked, moved = work(layer), sum(tail.values_in + tail.values_out for tail in layer.tail)
    return float(asked.flops), float(asked.values + moved), float(asked.parameters)


def _row(kind: str, operation: Layer) -> tuple[float, ...]:
    return amounts(operation) if kind == ANY else (*configuration(operation), *amounts(operation))


class KernelForests:
    def __init__(self, operations: Sequence[Layer], stages: Sequence[str], costs: Array, trees: int = 40) -> None:
        self.out_of_bag = np.full(len(costs), np.nan)  # what is said of each operation by those who never saw it
        self._forests: dict[tuple[str, str], Forest] = {}
        self._known: dict[tuple[Layer, str], float] = {}
        places: dict[tuple[str, str], list[int]] = {}
        for i, (operation, stage) in enumerate(zip(operations, stages, strict=True)):
            places.setdefault((operation_kind(operation), stage), []).append(i)
        for (kind, stage), mine in places.items():
            forest = grow_forest(np.array([_row(kind, operations[i]) for i in mine]), costs[mine], trees)
            self.out_of_bag[mine] = forest.out_of_bag
            self._forests[kind, stage] = forest
        for stage in dict.fromkeys(stages):
            mine = [i for i, s in enumerate(stages) if s == stage]
            self._forests[ANY, stage] = grow_forest(
                np.array([_row(ANY, operations[i]) for i in mine]), costs[mine], trees
            )

    def seconds(self, operation: Layer, stage: str) -> float:
        """0 of a stage in which nothing was ever measured."""
        key = operation, stage
        if key not in self._known:
            kind = operation_kind(operation) if (operation_kind(operation), stage) in self._forests else ANY
            forest = self._forests.get((kind, stage))
            row = np.array([_row(kind, operation)])
            self._known[key] = float(forest.costs(row)[0]) if forest else 0.0
        return self._known[key]
