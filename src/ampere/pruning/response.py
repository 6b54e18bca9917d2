"""How a network's layers follow the widths of its groups: learnt from one trace a group, then only arithmetic.

Channels, and the values that a tail reads and writes, are straight lines in every width:
    number(widths) = number(full) - sum over groups of slope * (full width - width)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ampere.core import Layer, Network, TrailingOp
from ampere.estimation.features import Array

Widths = tuple[int, ...]


@dataclass(frozen=True)
class Probe:
    """What the layers are when one group is so much narrower."""

    network: Network
    removed: int


class Response:
    def __init__(self, base: Network, full: Widths, probes: Sequence[Probe]) -> None:
        self.base, self.full = base, full
        self._numbers = [np.array(_numbers(layer)) for layer in base.layers]
        self._slopes: list[dict[int, Array]] = []
        for index, numbers in enumerate(self._numbers):
            changes = [(numbers - np.array(_numbers(p.network.layers[index]))) / p.removed for p in probes]
            self._slopes.append({group: change for group, change in enumerate(changes) if np.any(change)})
        self._made: dict[tuple[int, ...], Layer] = {}

    def network(self, widths: Widths) -> Network:
        return replace(self.base, layers=tuple(self._layer(i, widths) for i in range(len(self._numbers))))

    def _layer(self, index: int, widths: Widths) -> Layer:
        """Kept by the widths that the layer depends on: a step changes few of them."""
        slopes = self._slopes[index]
        key = (index, *(widths[group] for group in slopes))
        if key not in self._made:
            numbers = self._numbers[index].copy()
            for group, slope in slopes.items():
                numbers -= slope * (self.full[group] - widths[group])
            self._made[key] = _with_numbers(self.base.layers[index], numbers.tolist())
        return self._made[key]


def comparable(a: Network, b: Network) -> bool:
    """Whether two networks differ in numbers only."""
    return len(a.layers) == len(b.layers) and all(
        one.kind == other.kind and len(_numbers(one)) == len(_numbers(other))
        for one, other in zip(a.layers, b.layers, strict=True)
    )


def _numbers(layer: Layer) -> list[float]:
    tails = [value for tail in layer.trailing for value in (tail.values_in, tail.values_out)]
    config = [float(n) for key in sorted(layer.config) for n in _counts(layer.config[key])]
    return [float(layer.channels_in), float(layer.channels_out), *tails, *config]


def _counts(value: Any) -> Sequence[Any]:
    values = value if isinstance(value, tuple) else (value,)
    return values if all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values) else ()


def _with_numbers(layer: Layer, numbers: list[float]) -> Layer:
    rest = iter(numbers)
    channels_in, channels_out = (max(1, round(next(rest))) for _ in range(2))
    tail = tuple(TrailingOp(t.op, max(0.0, next(rest)), max(0.0, next(rest)), t.backward) for t in layer.trailing)
    config: dict[str, Any] = dict(layer.config)
    for key in sorted(config):
        if counts := _counts(config[key]):
            new = tuple(_like(old, next(rest)) for old in counts)
            config[key] = new if isinstance(config[key], tuple) else new[0]
    return replace(layer, config=config, channels_in=channels_in, channels_out=channels_out, trailing=tail)


def _like(old: float, new: float) -> float:
    return round(new) if isinstance(old, int) else new
