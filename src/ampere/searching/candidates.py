"""Candidates and what they cost: a million at once where widths are open, one by one elsewhere.

joules       of as many examples as an iteration of the original has, so that batches can be compared
capacity     sum over trainable layers of log2(1 + channels): doubling any layer counts the same, so that of two
             networks that cost the same the one without a bottleneck is preferred
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ampere.core import Network
from ampere.estimation.additive import Additive
from ampere.estimation.estimate import Estimator
from ampere.estimation.lookup_table import LookupTable, Template, template
from ampere.models.spaces import Arguments

from .spaces import SearchSpace, Shape

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

CHECKED, AGREE = 3, 0.02  # so many networks must cost the same in bulk and by themselves, to this share


class Group(Protocol):
    """Candidates that are trained in the same way."""

    optimizer: str
    batch: int
    joules: Array

    def stddevs(self, rows: Rows) -> Array: ...

    def capacity(self, rows: Rows) -> Array: ...

    def arguments(self, row: int) -> Arguments: ...


class OpenGroup:
    """One shape: all it can cost is in tables, and a candidate is a row of widths."""

    def __init__(
        self,
        shape: Shape,
        ready: LookupTable,
        opened: Template,
        price: float,
        doubt: float,
        optimizer: str,
        drawn: Rows,
    ) -> None:
        """`price` is joules of a second, `doubt` how unsure the device's present condition is, relative."""
        self.optimizer, self.batch, self._doubt = optimizer, opened.batch, doubt
        self._shape, self._ready, self._opened, self._price, self._widths = shape, ready, opened, price, drawn
        self.joules = ready.seconds(drawn) * price

    def stddevs(self, rows: Rows) -> Array:
        seconds, stddevs = self._ready.seconds_and_stddevs(self._widths[rows])
        return np.hypot(stddevs, self._doubt * seconds) * self._price

    def capacity(self, rows: Rows) -> Array:
        widths, total = self._widths[rows].astype(float), np.zeros(len(rows))
        for layer, channels in zip(self._opened.layers, self._opened.channels_out, strict=True):
            if layer.trainable:
                total += np.log2(1.0 + channels.at(widths))
        return total

    def arguments(self, row: int) -> Arguments:
        return self._shape.arguments([int(w) for w in self._widths[row]])


@dataclass
class ListedGroup:
    """Networks that were each estimated by themselves."""

    optimizer: str
    batch: int
    joules: Array
    _stddevs: Array
    _capacity: Array
    _arguments: Sequence[Arguments]

    def stddevs(self, rows: Rows) -> Array:
        return self._stddevs[rows]

    def capacity(self, rows: Rows) -> Array:
        return self._capacity[rows]

    def arguments(self, row: int) -> Arguments:
        return self._arguments[row]


class Prices:
    """What networks cost on one device with one optimiser, in joules of `examples` examples."""

    def __init__(self, estimator: Estimator, allocator: str, examples: int) -> None:
        self.estimator, self.allocator, self._examples = estimator, allocator, examples
        self.optimizer = estimator.profile.setup.optimizer

    def of(self, network: Network) -> tuple[float, float]:
        estimate = self.estimator.estimate(network, self.allocator)
        scale = self._examples / network.batch
        return estimate.joules * scale, estimate.stddev * scale

    def opened(self, shape: Shape, space: SearchSpace, drawn: Rows) -> OpenGroup | None:
        """None where layers do not follow the widths, or the method knows no tables."""
        model, price = self.estimator.of_joules
        if not isinstance(model, Additive) or not shape.largest:
            return None
        try:
            form = template(shape.largest, lambda widths: space.network(shape.arguments(widths)))
        except (IndexError, ValueError):  # a width decides how many layers there are
            return None
        some = self.estimator.estimate(form.network(shape.largest), self.allocator)
        doubt = float(np.hypot(self.estimator.condition_doubt, self.estimator.condition.stddev))
        price *= some.condition * self._examples / form.batch
        ready = LookupTable(model, form, some.allocator == "system")
        group = OpenGroup(shape, ready, form, price, doubt, self.optimizer, drawn)
        rows = np.linspace(0, len(drawn) - 1, CHECKED).astype(np.int64)
        said = [self.of(space.network(group.arguments(int(row))))[0] for row in rows]
        return group if np.allclose(group.joules[rows], said, rtol=AGREE) else None

    def listed(self, arguments: Sequence[Arguments], space: SearchSpace, report: Any) -> list[ListedGroup]:
        """Grouped by batch."""
        networks = []
        for done, each in enumerate(arguments):
            report(done, len(arguments), f"{done} of {len(arguments)} networks estimated")
            networks.append(space.network(each))
        groups = []
        for batch in dict.fromkeys(n.batch for n in networks):
            own = [i for i, n in enumerate(networks) if n.batch == batch]
            costs = np.array([self.of(networks[i]) for i in own])
            capacity = np.array([capacity_of(networks[i]) for i in own])
            chosen = [arguments[i] for i in own]
            groups.append(ListedGroup(self.optimizer, batch, costs[:, 0], costs[:, 1], capacity, chosen))
        return groups


def capacity_of(network: Network) -> float:
    return float(sum(np.log2(1.0 + layer.channels_out) for layer in network.layers if layer.trainable))
