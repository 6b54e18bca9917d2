"""A random forest for each kind of operation and each stage of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ampere.core import KINDS, Layer, work
from ampere.core.kinds import USUAL_WIDTH

from .features import Array, is_waste

# A random forest: trees grown on samples drawn with replacement, each split where it leaves the least variance.
#
#     x   one row of features      y   logarithms of costs, so that errors count relatively and answers are positive
#     answer = exp(mean over trees of the mean y in the leaf that x falls into)
#
# A tree asks only whether a feature is below a value, so features need no scaling.

TREES = 40
LEAST_TO_SPLIT = 2


@dataclass(frozen=True)
class Tree:
    """One node: a leaf, or a question with a tree for each answer."""

    mean: float
    feature: int = 0
    value: float = 0.0
    below: Tree | None = None
    above: Tree | None = None

    def answer(self, row: Array) -> float:
        node = self
        while node.below is not None and node.above is not None:
            node = node.below if row[node.feature] <= node.value else node.above
        return node.mean


@dataclass(frozen=True)
class Forest:
    trees: tuple[Tree, ...]
    out_of_bag: Array  # for each sample, what the trees that never saw it say; NaN where all did

    def costs(self, rows: Array) -> Array:
        return np.exp([np.mean([tree.answer(row) for tree in self.trees]) for row in rows]).reshape(-1)


def grow_forest(rows: Array, costs: Array, trees: int = TREES, seed: int = 0) -> Forest:
    rng, logs, count = np.random.default_rng(seed), np.log(costs), len(costs)
    grown, sums, votes = [], np.zeros(count), np.zeros(count)
    for _ in range(trees):
        drawn = rng.integers(count, size=count)
        tree = _grow(rows[drawn], logs[drawn])
        grown.append(tree)
        for index in np.setdiff1d(np.arange(count), drawn):
            sums[index] += tree.answer(rows[index])
            votes[index] += 1
    told = np.divide(sums, votes, out=np.full(count, np.nan), where=votes > 0)
    return Forest(tuple(grown), np.exp(told))


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
    """For each place to split at and each feature, by how much the squared error falls; nothing between equals."""
    count = len(sorted_rows)
    left = np.cumsum(sorted_logs, axis=0)[:-1]
    sizes = np.arange(1, count)[:, None]
    gain = left**2 / sizes + left**2 / (count - sizes)  # both halves' sums are opposite: the mean was taken away
    return np.where(sorted_rows[:-1] < sorted_rows[1:], gain, 0.0)


# A forest for each kind of operation and each stage of it, over the operation's configuration.

ANY = "any"  # a kind that was never seen is judged by what all operations have


def operation_kind(operation: Layer) -> str:
    """What shares a forest: a layer kind, or a class of operations of tails."""
    return f"tail.{operation.trailing[0].op}" if operation.kind == "nonparametric" else operation.kind


def configuration(layer: Layer) -> tuple[float, ...]:
    """Sizes as a user would name them: channels, places, kernel, stride, batch..."""
    if layer.kind == "nonparametric" and "size" in layer.config:
        size = layer.config["size"]
        return float(layer.config["batch"]), float(np.prod(size)), float(np.prod(size[1:]))
    told = KINDS[layer.kind].coordinates(layer, USUAL_WIDTH)
    waste = is_waste(layer.kind, len(told))
    return tuple(float(size) for size, wasted in zip(told, waste, strict=True) if not wasted)


def amounts(layer: Layer) -> tuple[float, ...]:
    """Arithmetic, memory moved and parameters, which every operation has."""
    asked, moved = work(layer), sum(tail.values_in + tail.values_out for tail in layer.trailing)
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
