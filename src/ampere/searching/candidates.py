"""What candidates cost, a million at once where widths are open and one by one elsewhere, and which to train.

joules       of as many examples as an iteration of the original has, so that batches can be compared
watts        joules over seconds of an iteration
capacity     sum over trainable layers of log2(1 + channels): doubling any layer counts the same, so that of two
             networks that cost the same the one without a bottleneck is preferred

    |  rung 1  | rung 2 |  ...  | rung n |      joules, each rung larger by the same factor
  least                              limit  budget       limit: the uncertainty just fits under the budget

From each rung the candidate of the largest capacity that stays inside the budget with the given confidence is chosen.
Ways to train (optimizer, batch) take turns. What an empty rung leaves free goes to the next best of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ampere.core import Network, units
from ampere.core.errors import UsageError
from ampere.estimation.additive import Additive
from ampere.estimation.estimator import Estimator
from ampere.estimation.lookup_table import Box, LayerTable, LookupTable, SumTable, Template, template
from ampere.models.spaces import Arguments

from .result import Candidate, in_words
from .spaces import SearchSpace, Shape

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
Progress = Callable[[float, float, str], None]  # done, total, in words

CHECKED, AGREE = 3, 0.02  # this many networks must cost the same in bulk and by themselves, to this share


class Group(Protocol):
    """Candidates that are trained in the same way."""

    optimizer: str
    batch: int
    joules: Array

    def stddevs(self, rows: Rows) -> Array: ...

    def watts(self) -> Array:
        """Of every candidate."""

    def capacity(self, rows: Rows) -> Array: ...

    def arguments(self, row: int) -> Arguments: ...

    def kept(self, rows: Rows) -> Group:
        """The same with only these candidates."""


class OpenGroup:
    """The networks of one shape: all costs are in tables, and a candidate is a row of widths."""

    def __init__(
        self,
        shape: Shape,
        table: LookupTable,
        form: Template,
        price: float,
        uncertainty: float,
        optimizer: str,
        drawn: Rows,
        seconds: Seconds,
    ) -> None:
        """`price` is joules of a second, `uncertainty` that of the device's present condition, relative.

        `seconds` are those of some widths, for as many examples as `joules` are.
        """
        self._again = (shape, table, form, price, uncertainty, optimizer)
        self.shape, self.sums, self.price, self.seconds = shape, table.sums, price, seconds
        self.optimizer, self.batch, self._uncertainty = optimizer, form.batch, uncertainty
        self._table, self._form, self.widths = table, form, drawn
        self.joules = self.joules_of(drawn)

    def joules_of(self, widths: Rows) -> Array:
        return self.sums.seconds(widths) * self.price

    def stddevs(self, rows: Rows) -> Array:
        seconds, stddevs = self._table.seconds_and_stddevs(self.widths[rows])
        return np.hypot(stddevs, self._uncertainty * seconds) * self.price

    def watts(self) -> Array:
        return np.asarray(self.joules / self.seconds(self.widths))

    def capacity(self, rows: Rows) -> Array:
        widths, total = self.widths[rows], np.zeros(len(rows))
        for column, sizes in enumerate(self.capacities()):
            total += sizes.take(widths[:, column])
        return total

    def capacities(self) -> list[Array]:
        """What each width adds to the capacity, for every value from 0 on; layers without one are in the first."""
        largest = self.shape.largest
        found = [np.zeros(1 + high) for high in largest]
        for layer, channels in zip(self._form.layers, self._form.channels_out, strict=True):
            if layer.trainable:
                column = channels.variable or 0
                values = np.tile(np.arange(1.0 + largest[column])[:, None], len(largest))
                found[column] += np.log2(1.0 + channels.at(values))
        return found

    def arguments(self, row: int) -> Arguments:
        return self.shape.arguments([int(w) for w in self.widths[row]])

    def kept(self, rows: Rows) -> OpenGroup:
        return self.at(self.widths[rows])

    def at(self, widths: Rows) -> OpenGroup:
        """The same with these candidates."""
        return OpenGroup(*self._again, widths, self.seconds)


@dataclass
class ListedGroup:
    """Networks that were each estimated by themselves."""

    optimizer: str
    batch: int
    joules: Array
    _stddevs: Array
    _capacity: Array
    _arguments: Sequence[Arguments]
    _watts: Array

    def stddevs(self, rows: Rows) -> Array:
        return self._stddevs[rows]

    def watts(self) -> Array:
        return self._watts

    def capacity(self, rows: Rows) -> Array:
        return self._capacity[rows]

    def arguments(self, row: int) -> Arguments:
        return self._arguments[row]

    def kept(self, rows: Rows) -> ListedGroup:
        arguments = [self._arguments[row] for row in rows]
        costs = (self.joules[rows], self._stddevs[rows], self._capacity[rows])
        return ListedGroup(self.optimizer, self.batch, *costs, arguments, self._watts[rows])


@dataclass(frozen=True)
class Seconds:
    """Seconds of widths, for as many examples as a group's joules are."""

    sums: SumTable
    factor: float  # to seconds, at the largest widths
    timed: Additive | None  # where `sums` are of a counter's joules: a table of seconds is made from it
    form: Template
    system: bool

    def __call__(self, widths: Rows) -> Array:
        table, factor = self._made
        return np.asarray(table.seconds(widths) * factor)

    def in_box(self, box: Box) -> Array:
        """Of all networks in a box, with an axis for each width."""
        table, factor = self._made
        return table.seconds_in(box) * factor

    @cached_property
    def _made(self) -> tuple[SumTable, float]:
        if self.timed is None:
            return self.sums, self.factor
        full, found = np.array([self.form.largest]), LookupTable(self.timed, self.form, self.system, False).sums
        return found, self.factor * float(self.sums.seconds(full)[0] / found.seconds(full)[0])


class Prices:
    """What networks cost on one device with one optimizer, in joules of `examples` examples."""

    def __init__(self, estimator: Estimator, allocator: str, examples: int) -> None:
        self.estimator, self.allocator, self._examples = estimator, allocator, examples
        self.optimizer = estimator.profile.setup.optimizer
        self._known: dict[Any, LayerTable] = {}  # shapes share layers

    def of(self, network: Network) -> tuple[float, float, float]:
        """Joules, their standard deviation, and watts."""
        estimate = self.estimator.estimate(network, self.allocator)
        scale = self._examples / network.batch
        return estimate.joules * scale, estimate.stddev * scale, estimate.joules / estimate.seconds

    def opened(self, shape: Shape, space: SearchSpace, drawn: Rows) -> OpenGroup | None:
        """A shape with tables of costs; None where more than widths decide the layers, or the method has no tables."""
        model, price = self.estimator.of_joules
        if not isinstance(model, Additive) or not shape.largest:
            return None
        try:
            form = template(shape.largest, lambda widths: space.network(shape.arguments(widths)))
        except (IndexError, ValueError):  # a width decides how many layers there are
            return None
        some = self.estimator.estimate(form.network(shape.largest), self.allocator)
        uncertainty = float(np.hypot(self.estimator.condition_uncertainty, self.estimator.condition.stddev))
        price *= some.condition * self._examples / form.batch
        timed, system = self.estimator.model, some.allocator == "system"
        table = LookupTable(model, form, system, known=self._known)
        other = None if model is timed or not isinstance(timed, Additive) else timed
        seconds = Seconds(table.sums, price / (some.joules / some.seconds), other, form, system)
        group = OpenGroup(shape, table, form, price, uncertainty, self.optimizer, drawn, seconds)
        rows = np.linspace(0, len(drawn) - 1, CHECKED).astype(np.int64)
        alone = [self.of(space.network(group.arguments(int(row))))[0] for row in rows]
        return group if np.allclose(group.joules[rows], alone, rtol=AGREE) else None

    def listed(self, arguments: Sequence[Arguments], space: SearchSpace, report: Progress) -> list[ListedGroup]:
        """Networks estimated one by one, grouped by batch."""
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
            groups.append(ListedGroup(self.optimizer, batch, costs[:, 0], costs[:, 1], capacity, chosen, costs[:, 2]))
        return groups


def capacity_of(network: Network) -> float:
    return float(sum(np.log2(1.0 + layer.channels_out) for layer in network.layers if layer.trainable))


def within_power(groups: Sequence[Group], limit_watts: float) -> list[Group]:
    """Only the candidates that draw no more."""
    watts = [group.watts() for group in groups]
    least = min(float(each.min()) for each in watts)
    if least > limit_watts:
        raise UsageError(
            f"the limit of {units.watts(limit_watts)} of power cannot be met: the least that was found is "
            f"{units.watts(least)}; give more than that"
        )
    kept = zip(groups, (np.flatnonzero(each <= limit_watts) for each in watts), strict=True)
    return [group.kept(rows) for group, rows in kept if len(rows)]


def screened_inside(
    groups: Sequence[Group], allowed: float, deviations: float, count: int, rng: np.random.Generator
) -> list[Candidate]:
    """Candidates inside the budget with this confidence, at random, in random order."""
    fitting = [np.flatnonzero(group.joules <= allowed) for group in groups]
    owner = np.repeat(np.arange(len(groups)), [len(rows) for rows in fitting])
    rows = np.concatenate(fitting)
    drawn = rng.permutation(len(rows))[: 4 * count]
    found = []
    for index, group in enumerate(groups):
        own = rows[drawn[owner[drawn] == index]]
        for row, stddev in zip(own, group.stddevs(own) if len(own) else (), strict=True):
            joules = float(group.joules[row])
            if joules + deviations * stddev <= allowed:
                found.append(Candidate(group.arguments(int(row)), group.optimizer, group.batch, joules, float(stddev)))
    return [found[i] for i in rng.permutation(len(found))[:count]]


SPAN = 16.0  # the cheapest rung begins at most this many times below the budget
SAMPLES = 64  # of each group, to find the typical uncertainty
TRIED = 16  # of the largest capacity in a rung: the first whose uncertainty fits too is taken
Key = tuple[int, int]  # group, row


def choose(groups: Sequence[Group], allowed: float, deviations: float, count: int) -> list[Candidate]:
    """The candidates to train, the most expensive first."""
    least = refuse_impossible(groups, allowed)
    most = max(float(g.joules.max()) for g in groups)
    limit = max(least, min(most, _limit(groups, allowed, deviations)))
    edges = np.geomspace(max(least, limit / SPAN), limit, count + 1)
    edges[0], edges[-1] = edges[0] * (1 - 1e-9), edges[-1] * (1 + 1e-9)
    ways = list(dict.fromkeys((g.optimizer, g.batch) for g in groups))
    chosen: dict[Key, Candidate] = {}
    for _ in range(count):
        before = len(chosen)
        for rung in range(count - 1, -1, -1):
            turn = (count - 1 - rung + len(chosen) // count) % len(ways)
            between = edges[rung : rung + 2]
            tries = (_best(groups, way, between, deviations, allowed, chosen) for way in [*ways[turn:], *ways[:turn]])
            found = next(filter(None, tries), None)
            if found and len(chosen) < count:
                chosen[found[0]] = found[1]
        if len(chosen) in (before, count):
            break
    if not chosen:
        raise UsageError(
            f"no candidate stays inside {units.joules(allowed)} with this confidence, though some are estimated "
            "below it: give a lower --confidence, or a larger budget"
        )
    return sorted(chosen.values(), key=lambda c: -c.joules)


KEPT_RUNGS = 96  # of joules below the budget, in each of which a part of a large search leaves the best TRIED


def _limit(groups: Sequence[Group], allowed: float, deviations: float) -> float:
    """Joules above which the uncertainty of a typical candidate reaches over the budget."""
    relative: list[float] = []
    for group in groups:
        rows = np.flatnonzero((group.joules > allowed / 2) & (group.joules <= allowed))[:SAMPLES]
        if len(rows):
            relative += list(group.stddevs(rows) / group.joules[rows])
    return allowed / (1 + deviations * float(np.median(relative))) if relative else allowed


def _best(
    groups: Sequence[Group],
    way: tuple[str, int],
    rung: Any,
    deviations: float,
    allowed: float,
    taken: dict[Key, Candidate],
) -> tuple[Key, Candidate] | None:
    best: tuple[float, Key, Candidate] | None = None
    known = {(c.optimizer, repr(c.arguments)) for c in taken.values()}
    for index, group in enumerate(groups):
        if (group.optimizer, group.batch) != way:
            continue
        rows = np.flatnonzero((group.joules > rung[0]) & (group.joules <= rung[1]))
        if not len(rows):
            continue
        capacity = group.capacity(rows)
        top = rows[np.argsort(-capacity, kind="stable")[: TRIED + len(taken)]]
        for row, stddev, size in zip(top, group.stddevs(top), np.sort(capacity)[::-1], strict=False):
            joules, arguments = float(group.joules[row]), group.arguments(int(row))
            if (best and best[0] >= size) or joules + deviations * stddev > allowed:
                continue
            if (group.optimizer, repr(arguments)) not in known:
                found = Candidate(arguments, group.optimizer, group.batch, joules, float(stddev))
                best = float(size), (index, int(row)), found
    return best[1:] if best else None


def refuse_impossible(groups: Sequence[Group], allowed: float) -> float:
    """The least joules there are. Raises UsageError where that is more than allowed."""
    least = min(float(g.joules.min()) for g in groups)
    if least <= allowed:
        return least
    group = min(groups, key=lambda g: float(g.joules.min()))
    cheapest = group.arguments(int(np.argmin(group.joules)))
    raise UsageError(
        f"the budget of {units.joules(allowed)} cannot be met: the least that was found is {units.joules(least)}, with "
        f"{in_words(cheapest)}; give more than that"
    )
