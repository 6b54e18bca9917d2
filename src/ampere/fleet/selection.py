"""Which clients of a federated job train in a round: useful ones that cost few joules, inside batteries and a budget.

    value of a client = usefulness / joules

Usefulness is examples times the root mean square of the losses that the client reported last, which shrinks as the
model learns its data. A client that never trained counts as the most useful one, and one that has waited long counts a
little more each round, so that none is forgotten. Joules are upper bounds with the confidence asked for, for batteries
and budget; those that a client reports replace what was estimated for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from statistics import NormalDist

from ampere.core.errors import UsageError

WAITING = 0.1  # how much rounds of waiting count
EXPLORED = 0.2  # share of a round that is chosen among clients that trained least often


@dataclass(frozen=True)
class Client:
    """A client: what a round of training on its data is estimated to cost it."""

    joules: float
    stddev: float = 0.0
    battery_joules: float = math.inf  # energy left for training
    examples: int = 1


@dataclass
class _History:
    rounds: int = 0
    last: int = 0
    loss: float | None = None
    spent: float = 0.0
    measured: float | None = None  # joules of a round, as it reported them


@dataclass
class Selector:
    """Chooses clients round by round, and keeps account of what they spend."""

    clients: Mapping[str, Client]
    budget_joules: float = math.inf  # of the whole fleet, for the whole job
    confidence: float = 0.95
    seed: int = 0
    _seen: dict[str, _History] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.clients:
            raise UsageError("there are no clients to choose from: give at least one")
        if not 0.5 <= self.confidence < 1 or not self.budget_joules > 0:
            raise UsageError("a confidence from 50% to 99.9% and a positive budget are needed")
        for name, client in self.clients.items():
            if not (0 < client.joules < math.inf and client.stddev >= 0 and client.examples >= 1):
                raise UsageError(f"client {name!r:.60} must have positive joules and examples")
        self._z = NormalDist().inv_cdf(self.confidence)
        self._seen = {name: _History() for name in self.clients}
        self._random = Random(self.seed)

    @property
    def spent_joules(self) -> float:
        return sum(seen.spent for seen in self._seen.values())

    def spent_by(self, name: str) -> float:
        return self._seen[name].spent

    def joules(self, name: str) -> float:
        """What a round is expected to cost a client."""
        measured = self._seen[name].measured
        return self.clients[name].joules if measured is None else measured

    def at_most(self, name: str) -> float:
        """What a round costs a client at most, with the confidence asked for."""
        client = self.clients[name]
        return self.joules(name) * (1 + self._z * client.stddev / client.joules)

    def select(self, round: int, count: int, available: Iterable[str] | None = None) -> list[str]:
        """At most `count` clients for a round; fewer where batteries or the budget do not hold."""
        left = self.budget_joules - self.spent_joules
        able = [name for name in (self.clients if available is None else available) if self._lasts(name)]
        chosen: list[str] = []
        ranked = sorted(able, key=lambda name: -self._value(name, round))
        explored = sorted(able, key=lambda name: (self._seen[name].rounds, self._random.random()))
        for name in [*ranked[: count - int(EXPLORED * count)], *explored, *ranked]:
            if len(chosen) == count:
                break
            if name not in chosen and self.at_most(name) <= left:
                chosen.append(name)
                left -= self.at_most(name)
        return chosen

    def report(self, round: int, name: str, loss: float | None = None, joules: float | None = None) -> None:
        """What a client has done: its loss, and its joules where it measured them."""
        if name not in self._seen:
            raise UsageError(f"{name!r:.60} is no client of this job")
        seen = self._seen[name]
        if joules is not None and math.isfinite(joules) and joules > 0:
            before = self.joules(name)
            seen.measured = joules if seen.measured is None else (before + joules) / 2
        seen.spent += joules if joules is not None and math.isfinite(joules) and joules >= 0 else self.joules(name)
        seen.rounds, seen.last = seen.rounds + 1, round
        if loss is not None and math.isfinite(loss):
            seen.loss = abs(loss)

    def _lasts(self, name: str) -> bool:
        return self._seen[name].spent + self.at_most(name) <= self.clients[name].battery_joules

    def _value(self, name: str, round: int) -> float:
        seen = self._seen[name]
        losses = [other.loss for other in self._seen.values() if other.loss is not None]
        loss = seen.loss if seen.loss is not None else max(losses, default=1.0)
        waiting = math.sqrt(WAITING * math.log(max(round, 2)) / max(seen.last, 1))
        return self.clients[name].examples * (loss + waiting * loss) / self.joules(name)
