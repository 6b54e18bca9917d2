"""Random forests of operation costs: one for each kind of operation and each stage of a training step.

x   an operation's sizes and amounts of work
y   logarithms of costs, so that errors count relatively and estimates are positive
"""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ampere.core import KINDS, Layer, work
from ampere.core.errors import RuntimeMissingError
from ampere.core.kinds import USUAL_WIDTH

from .features import Array, is_waste

if TYPE_CHECKING:
    from sklearn.ensemble import RandomForestRegressor

TREES = 40
ANY = "any"  # operations of kinds that were never measured are estimated from what all operations have


def unavailable() -> str:
    """Why forests cannot be grown here and what to do about it; empty where they can."""
    found = importlib.util.find_spec("sklearn") is not None
    return "" if found else "it needs scikit-learn: pip install 'ampere-energy[baselines]'"


def load_forests() -> None:
    """Imports scikit-learn, which takes about a second: while a worker starts, that costs nothing."""
    if reason := unavailable():
        raise RuntimeMissingError(f"the kernels method cannot run: {reason}")
    importlib.import_module("sklearn.ensemble")


def grow_forest(rows: Array, costs: Array, trees: int = TREES, seed: int = 0) -> RandomForestRegressor:
    load_forests()
    from sklearn.ensemble import RandomForestRegressor

    # With few trees some samples are in all of them: `out_of_bag` says NaN of those.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        forest = RandomForestRegressor(trees, oob_score=len(costs) > 1, random_state=seed)
        return forest.fit(rows, np.log(costs))


def forest_costs(forest: RandomForestRegressor, rows: Array) -> Array:
    return np.exp(forest.predict(rows))


def out_of_bag(forest: RandomForestRegressor, count: int) -> Array:
    """For each sample, the estimate of those trees that were grown without it; NaN where all saw it."""
    seen = [np.isin(np.arange(count), sample) for sample in forest.estimators_samples_]
    estimates: Any = getattr(forest, "oob_prediction_", np.zeros(count))
    return np.where(np.all(seen, axis=0), np.nan, np.exp(estimates))


def operation_kind(operation: Layer) -> str:
    """What shares a forest: a layer kind, or a class of trailing operations."""
    return f"tail.{operation.trailing[0].op}" if operation.kind == "nonparametric" else operation.kind


def configuration(layer: Layer) -> tuple[float, ...]:
    """Sizes as a user would name them: channels, places, kernel, stride, batch..."""
    if layer.kind == "nonparametric" and "size" in layer.config:
        size = layer.config["size"]
        return float(layer.config["batch"]), float(np.prod(size)), float(np.prod(size[1:]))
    coordinates = KINDS[layer.kind].coordinates(layer, USUAL_WIDTH)
    waste = is_waste(layer.kind, len(coordinates))
    return tuple(float(size) for size, wasted in zip(coordinates, waste, strict=True) if not wasted)


def amounts(layer: Layer) -> tuple[float, ...]:
    """Arithmetic, memory moved and parameters, which every operation has."""
    needed, moved = work(layer), sum(tail.values_in + tail.values_out for tail in layer.trailing)
    return float(needed.flops), float(needed.values + moved), float(needed.parameters)


def _row(kind: str, operation: Layer) -> tuple[float, ...]:
    return amounts(operation) if kind == ANY else (*configuration(operation), *amounts(operation))


class KernelForests:
    """Forests fitted to operations that were measured alone, each in one stage."""

    def __init__(self, operations: Sequence[Layer], stages: Sequence[str], costs: Array, trees: int = TREES) -> None:
        self.out_of_bag = np.full(len(costs), np.nan)
        self._forests: dict[tuple[str, str], RandomForestRegressor] = {}
        places: dict[tuple[str, str], list[int]] = {}
        for i, (operation, stage) in enumerate(zip(operations, stages, strict=True)):
            places.setdefault((operation_kind(operation), stage), []).append(i)
            places.setdefault((ANY, stage), []).append(i)
        for (kind, stage), mine in places.items():
            rows = np.array([_row(kind, operations[i]) for i in mine])
            forest = self._forests[kind, stage] = grow_forest(rows, costs[mine], trees)
            if kind != ANY:
                self.out_of_bag[mine] = out_of_bag(forest, len(mine))

    def costs(self, operations: Iterable[tuple[Layer, str]]) -> dict[tuple[Layer, str], float]:
        """The cost of each operation in a stage, 0 of a stage in which nothing was ever measured."""
        found: dict[tuple[Layer, str], float] = {}
        by_forest: dict[tuple[str, str], list[Layer]] = {}
        for operation, stage in dict.fromkeys(operations):
            known = (operation_kind(operation), stage) in self._forests
            by_forest.setdefault((operation_kind(operation) if known else ANY, stage), []).append(operation)
        for (kind, stage), own in by_forest.items():
            forest = self._forests.get((kind, stage))
            rows = np.array([_row(kind, operation) for operation in own])
            each = forest_costs(forest, rows) if forest else np.zeros(len(own))
            found.update({(o, stage): float(cost) for o, cost in zip(own, each, strict=True)})
        return found
