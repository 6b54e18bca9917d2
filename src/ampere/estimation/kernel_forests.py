"""Random forests over operations: one for each kind of operation and each stage of a training step.

    x   one row of features      y   logarithms of costs, so that errors are relative and costs positive
    cost = exp(mean over trees of the mean y in the leaf that x falls into)

Trees are grown on samples drawn with replacement, and split where that leaves the least variance. A tree only
compares a feature with a value, so features need no scaling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ampere.core import KINDS, Layer, work
from ampere.core.kinds import USUAL_WIDTH

from .features import Array, is_waste

TREES = 40
LEAST_TO_SPLIT = 2
ANY = "any"  # the forest for kinds that were never measured: it uses only features that all operations have


@dataclass(frozen=True)
class Tree:
    """One node: a leaf, or a split on a feature with a tree on each side."""

    mean: float
    feature: int = 0
    value: float = 0.0
    below: Tree | None = None
    above: Tree | None = None

    def answer(self, row: Array) -> float:
        """The mean logarithm of the leaf that a row falls into."""
        node = self
        while node.below is not None and node.above is not None:
            node = node.below if row[node.feature] <= node.value else node.above
        return node.mean


@dataclass(frozen=True)
class Forest:
    """Trees, and their costs for the samples that they were grown from."""

    trees: tuple[Tree, ...]
    out_of_bag: Array  # each sample's cost by the trees that were grown without it; NaN where there are none

    def costs(self, rows: Array) -> Array:
        """The cost of each row."""
        return np.exp([np.mean([tree.answer(row) for tree in self.trees]) for row in rows]).reshape(-1)


def grow_forest(rows: Array, costs: Array, trees: int = TREES, seed: int = 0) -> Forest:
    """A forest grown from rows of features and their costs."""
    rng, logs, count = np.random.default_rng(seed), np.log(costs), len(costs)
    grown, sums, votes = [], np.zeros(count), np.zeros(count)
    for _ in range(trees):
        drawn = rng.integers(count, size=count)
        tree = _grow(rows[drawn], logs[drawn])
        grown.append(tree)
        for index in np.setdiff1d(np.arange(count), drawn):
            sums[index] += tree.answer(rows[index])
            votes[index] += 1
    means = np.divide(sums, votes, out=np.full(count, np.nan), where=votes > 0)
    return Forest(tuple(grown), np.exp(means))


def _grow(rows: Array, logs: Array) -> Tree:
    mean = float(logs.mean())
    if len(logs) < LEAST_TO_SPLIT or np.ptp(logs) == 0.0:
        return Tree(mean)
    order = np.argsort(rows, axis=0, kind="stable")
    sorted_rows, sorted_logs = np.take_along_axis(rows, order, axis=0), logs[order] - mean
    explained = _explained(sorted_rows, sorted_logs)
    place, feature = np.unravel_index(int(np.argmax(explained)), explained.shape)
    if not explained[place, feature] > 0.0:
        return Tree(mean)
    value = float(sorted_rows[place : place + 2, feature].mean())
    below = rows[:, feature] <= value
    if below.all():  # two neighbours so close that their mean is the larger
        return Tree(mean)
    return Tree(mean, int(feature), value, _grow(rows[below], logs[below]), _grow(rows[~below], logs[~below]))


def _explained(sorted_rows: Array, sorted_logs: Array) -> Array:
    """The drop in squared error for each split position and feature; 0 between equal values."""
    count = len(sorted_rows)
    left = np.cumsum(sorted_logs, axis=0)[:-1]
    sizes = np.arange(1, count)[:, None]
    gain = left**2 / sizes + left**2 / (count - sizes)  # both halves have opposite sums: the mean is subtracted
    return np.where(sorted_rows[:-1] < sorted_rows[1:], gain, 0.0)


def operation_kind(operation: Layer) -> str:
    """The key of an operation's forest: its layer kind, or the class of a trailing operation."""
    return f"tail.{operation.tail[0].op}" if operation.kind == "glue" else operation.kind


def configuration(layer: Layer) -> tuple[float, ...]:
    """An operation's sizes as a user would name them: channels, positions, kernel, stride, batch..."""
    if layer.kind == "glue" and "size" in layer.config:
        size = layer.config["size"]
        return float(layer.config["batch"]), float(np.prod(size)), float(np.prod(size[1:]))
    sizes = KINDS[layer.kind].coordinates(layer, USUAL_WIDTH)
    waste = is_waste(layer.kind, len(sizes))
    return tuple(float(size) for size, wasted in zip(sizes, waste, strict=True) if not wasted)


def amounts(layer: Layer) -> tuple[float, ...]:
    """An operation's arithmetic, memory moved and parameters."""
    needed, moved = work(layer), sum(op.values_in + op.values_out for op in layer.tail)
    return float(needed.flops), float(needed.values + moved), float(needed.parameters)


def _row(kind: str, operation: Layer) -> tuple[float, ...]:
    return amounts(operation) if kind == ANY else (*configuration(operation), *amounts(operation))


class KernelForests:
    """Forests over operations' configurations, by kind and stage."""

    def __init__(self, operations: Sequence[Layer], stages: Sequence[str], costs: Array, trees: int = TREES) -> None:
        self.out_of_bag = np.full(len(costs), np.nan)  # each operation's cost by trees that were grown without it
        self._forests: dict[tuple[str, str], Forest] = {}
        self._cache: dict[tuple[Layer, str], float] = {}
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
        """The seconds of one operation in one stage; 0 where nothing was ever measured in that stage."""
        key = operation, stage
        if key not in self._cache:
            kind = operation_kind(operation) if (operation_kind(operation), stage) in self._forests else ANY
            forest = self._forests.get((kind, stage))
            row = np.array([_row(kind, operation)])
            self._cache[key] = float(forest.costs(row)[0]) if forest else 0.0
        return self._cache[key]
