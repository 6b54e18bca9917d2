"""Layers as numbers: the quantities of work they need (for physics) and their position in a kind (for the residual)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ampere.core import KINDS, Layer, Network, work
from ampere.core.kinds import GROUPS, group, kind_of_group
from ampere.core.layer import TRAILING_CLASSES

Array = NDArray[np.float64]

PER_KIND = (
    "launches",
    "flops",
    "half_padded_flops",
    "padded_flops",
    "values",
    "padded_values",
    "weights",
    "remainders",
    "remainder_flops",
)
# Prior price of each column in seconds, before anything was measured: that of a slow laptop core.
PRIOR_SECONDS = {
    "launches": 5e-6,
    "flops": 1e-11,
    "half_padded_flops": 5e-12,
    "padded_flops": 1e-11,
    "values": 3e-10,
    "padded_values": 1e-10,
    "weights": 3e-10,
    "remainders": 2e-9,
    "remainder_flops": 0.0,  # unless the runtime computes them one by one: ONE_BY_ONE_SECONDS
}
ONE_BY_ONE_SECONDS = 2e-11
TAIL_PRIOR_SECONDS = 6e-10
ENLARGE_PRIOR_SECONDS = 4e-9
TRANSCENDENTAL_PRIOR_SECONDS = 2e-9

COLUMNS: tuple[str, ...] = (
    "step",
    "update.parameters",
    "update.tensors",
    *(f"tail.{op}" for op in TRAILING_CLASSES),
    *(f"tail_{op}.launches" for op in TRAILING_CLASSES),
    *(f"{kind}.{quantity}" for kind in GROUPS for quantity in PER_KIND),
)
COLUMN = {name: index for index, name in enumerate(COLUMNS)}


def _prior(column: str) -> float:
    fixed = {
        "step": 1e-4,
        "update.parameters": 1e-9,
        "update.tensors": 5e-6,
        "tail.enlarge": ENLARGE_PRIOR_SECONDS,
        "tail.transcendental": TRANSCENDENTAL_PRIOR_SECONDS,
    }
    if column in fixed:
        return fixed[column]
    return TAIL_PRIOR_SECONDS if column.startswith("tail.") else PRIOR_SECONDS[column.split(".")[1]]


PRIOR_PRICES: Array = np.array([_prior(column) for column in COLUMNS])
ONE_BY_ONE: Array = PRIOR_PRICES + [ONE_BY_ONE_SECONDS * c.endswith(".remainder_flops") for c in COLUMNS]

# Rows that pick columns: `row @ FLOPS` sums a row's arithmetic.
STEP: Array = np.eye(len(COLUMNS))[COLUMN["step"]]
FLOPS = np.array([c.endswith(".flops") for c in COLUMNS], dtype=float)
VALUES = np.array(
    [c.endswith(".values") or (c in {f"tail.{t}" for t in TRAILING_CLASSES}) for c in COLUMNS], dtype=float
)


def layer_columns(layer: Layer, width: int, kind: str) -> dict[int, Any]:
    """One layer's amount in each physics column: numbers, or arrays where its channels are arrays."""
    needed = work(layer, width)
    columns = {COLUMN[f"{kind}.{quantity}"]: getattr(needed, quantity) for quantity in PER_KIND}
    columns[COLUMN["update.parameters"]] = needed.parameters
    columns[COLUMN["update.tensors"]] = needed.parameter_tensors
    for name, amount in KINDS[layer.kind].inside(layer).items():
        columns[COLUMN[f"tail.{name}"]] = amount
    for op in layer.trailing:
        passes = 1 + int(op.backward)
        amounts = {
            f"tail.{op.op}": (op.values_in + op.values_out) * passes * op.weight,
            f"tail_{op.op}.launches": passes,
        }
        for name, amount in amounts.items():
            columns[COLUMN[name]] = columns.get(COLUMN[name], 0) + amount
    return columns


@lru_cache(maxsize=65536)
def layer_row(layer: Layer, width: int) -> Array:
    """One layer's amount in each physics column, for a device of this vector width."""
    row = np.zeros(len(COLUMNS))
    for column, value in layer_columns(layer, width, group(layer)).items():
        row[column] = value
    return row


@lru_cache(maxsize=65536)
def layer_position(layer: Layer, width: int) -> Array:
    """A layer's coordinates in its kind, in octaves: cost changes with ratios of sizes, not with differences."""
    return np.log2(np.maximum(np.array(KINDS[layer.kind].coordinates(layer, width), dtype=float), 1e-9))


@lru_cache(maxsize=1024)
def is_waste(kind: str, coordinates: int) -> tuple[bool, ...]:
    """Which coordinates say how far the channels are from a multiple of the vector width."""
    return tuple(index in kind_of_group(kind).waste for index in range(coordinates))


@dataclass(frozen=True)
class NetworkFeatures:
    """A network's distinct layers, how often each runs, and its position among whole networks."""

    layers: tuple[Layer, ...]
    counts: Array
    rows: Array  # physics columns of each layer
    places: tuple[tuple[str, bytes], ...]  # of each layer: its group and its position there
    row: Array  # physics columns of one step, the step itself included
    position: Array


@lru_cache(maxsize=16384)
def network_features(network: Network, width: int) -> NetworkFeatures:
    """The features of a network, for a device of this vector width."""
    distinct = network.distinct
    counts = np.array(list(distinct.values()), dtype=float)
    rows = np.array([layer_row(layer, width) for layer in distinct]).reshape(-1, len(COLUMNS))
    row = counts @ rows + STEP if len(counts) else STEP.copy()
    places = tuple((group(layer), layer_position(layer, width).tobytes()) for layer in distinct)
    return NetworkFeatures(tuple(distinct), counts, rows, places, row, network_position(row, np.sum(counts)))


def network_position(row: Array, depth: Any) -> Array:
    """A network's position: octaves of arithmetic, of memory moved and of depth."""
    return np.stack([np.log2(1e3 + row @ FLOPS), np.log2(1e3 + row @ VALUES), np.log2(1.0 + depth)], axis=-1)


def clear_caches() -> None:
    """Lets go of what was computed of layers and networks: a process that runs for days would keep all it ever saw."""
    for kept in (layer_row, layer_position, network_features):
        kept.cache_clear()
