"""A model that is ready to be pruned: its groups are found and tried once, its widths chosen as often as costs change.

-> choose widths on the estimate     strategies, with layers that follow widths by arithmetic (response)
-> narrow a copy, trace, estimate    exactly; if that is dearer than arithmetic said, choose again with less
"""

from __future__ import annotations

import random
from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from ampere.core import Network, units
from ampere.core.errors import ModelError
from ampere.pruning.strategies import STRATEGIES, Chosen, Problem
from ampere.tracing.trace import trace

from .price import Flops, Joules, Price, Priced
from .probing import Progress, Prunable, probe
from .refusals import check_strategy, refuse_impossible
from .response import Widths
from .result import Pruned, Width
from .structure import without
from .trying import ShortTraining, best, on_inputs

if TYPE_CHECKING:
    from torch import nn

TRIES = 5
CANDIDATES = 8  # of the random strategy
NEAR = 0.003  # so little more than its trace costs, arithmetic left nothing of the budget unused


class Candidate(NamedTuple):
    chosen: Chosen
    model: nn.Module
    network: Network


class Pruner:
    def __init__(
        self,
        model: nn.Module,
        inputs: Any,
        strategy: str,
        keep: Collection[str] = (),
        seed: int = 0,
        name: str = "",
        short_training: ShortTraining | None = None,
        on_progress: Progress = lambda done, total, words: None,
    ) -> None:
        check_strategy(strategy)
        one = not isinstance(inputs, (dict, list, tuple))
        self.inputs = inputs if isinstance(inputs, dict) else (inputs,) if one else tuple(inputs)
        self.strategy, self.progress = strategy, on_progress
        self.network = trace(model, self.inputs, name=name)
        self._model, self._keep, self._seed = model, keep, seed
        self._short_training = short_training or on_inputs(self.inputs)

    @cached_property
    def prunable(self) -> Prunable:
        return probe(self._model, self.inputs, self.network, self._keep, self.progress)

    def pruned(self, joules: Joules, allowed: float, confidence: float) -> Pruned:
        """Inside what is allowed, as the joules are priced; FLOPs are held to a share of their own as large."""
        before = joules.estimate(self.network)
        price: Price = Flops(self.network, before.joules) if self.strategy == "flops" else joules
        cost = Priced(self.prunable.response, price)
        refuse_impossible(self.prunable, cost, allowed, before.joules)
        found = self._best(cost, allowed) if self.strategy == "random" else self._within(cost, allowed, self._seed)
        left = zip(self.prunable.groups, self._left(found.chosen), strict=True)
        return Pruned(
            found.model,
            self.strategy,
            allowed,
            confidence,
            (self.network, found.network),
            before,
            joules.estimate(found.network),
            joules.of(found.network),
            tuple(Width(g.name, g.width * g.channels_each, width * g.channels_each) for g, width in left),
            self.prunable.fixed,
        )

    def _best(self, cost: Priced, allowed: float) -> Candidate:
        candidates = [self._within(cost, allowed, f"{self._seed} {number}") for number in range(CANDIDATES)]
        self.progress(0, 1, f"training {CANDIDATES} candidates for a moment")
        return candidates[best([candidate.model for candidate in candidates], self._short_training)]

    def _within(self, cost: Priced, allowed: float, seed: int | str) -> Candidate:
        """Chosen by arithmetic, judged by a trace of the narrowed model itself; again where arithmetic was off."""
        aim, most, least, groups = allowed, 0.0, float("inf"), self.prunable.groups
        found: Candidate | None = None
        for done in range(TRIES):
            self.progress(done, TRIES, "choosing widths")
            problem = Problem([g.importance for g in groups], cost, aim, random.Random(seed), cost.many)
            chosen = STRATEGIES[self.strategy](problem)
            if chosen is None:
                break
            narrowed = without(self.prunable.model, groups, {group.name: chosen[i] for i, group in enumerate(groups)})
            network = trace(narrowed, self.inputs, name=self.network.name)
            exact, said = cost.price.of(network), cost(self._left(chosen))
            least = min(least, exact)
            if most < exact <= allowed:
                found, most = Candidate(chosen, narrowed, network), exact
            if exact <= allowed and said <= (1 + NEAR) * exact:
                break
            aim = 0.999 * allowed * said / exact
        if found:
            return found
        seen = f" surely enough: the least that it found is {units.joules(least)}" if least < float("inf") else ""
        raise ModelError(
            f"{self.strategy} finds no widths that meet the budget of {units.joules(allowed)} an iteration{seen}; "
            "give more, or a lower confidence, or profile this very model"
        )

    def _left(self, chosen: Chosen) -> Widths:
        return tuple(group.width - len(chosen[i]) for i, group in enumerate(self.prunable.groups))
