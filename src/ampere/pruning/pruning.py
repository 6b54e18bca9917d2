"""Which of several pruned models learns best: each is trained for a few steps, as the paper's random pruning does."""

from __future__ import annotations

import copy
import difflib
import math
import random
from collections.abc import Callable, Collection, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ampere.core import Network, units
from ampere.core.errors import ModelError, UsageError
from ampere.estimation.estimate import Estimator
from ampere.tracing.trace import trace

from .budget import deviations, joules_allowed
from .checking import Place, prune_and_check
from .price import Flops, Joules, Price, Priced, Widths
from .probing import Progress, Prunable, probe
from .result import Pruned, Width
from .strategies import STRATEGIES
from .structure import without
from .widths import Chosen, Problem, cheapest

if TYPE_CHECKING:
    from torch import nn


STEPS, RATE = 20, 0.01

ShortTraining = Callable[["nn.Module"], float]  # a copy of a candidate -> its loss afterwards


def on_inputs(inputs: Any) -> ShortTraining:
    """On the example inputs, towards labels that stay the same: what there is without the user's data."""

    def train(model: nn.Module) -> float:
        import torch

        from ampere.runtimes.torch_model import training_loss

        optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=RATE)
        loss = math.nan
        model.train()
        with torch.enable_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            for _ in range(STEPS):
                optimizer.zero_grad()
                value = training_loss(model(**inputs) if isinstance(inputs, dict) else model(*inputs))
                value.backward()
                optimizer.step()
                loss = float(value.detach())
        return loss

    return train


def best(candidates: Sequence[nn.Module], train: ShortTraining) -> int:
    """The place of the one with the least loss; those whose loss is no number are out."""
    losses = [float(train(copy.deepcopy(model))) for model in candidates]
    sound = [(loss, place) for place, loss in enumerate(losses) if math.isfinite(loss)]
    if not sound:
        raise ModelError(
            f"the short training of all {len(losses)} random candidates ended in a loss that is no number: "
            "check the model's inputs and weights for NaN, or use --strategy energy, which trains nothing"
        )
    return min(sound)[1]


# What is said of budgets that ask for nothing, or for too much.

SHOWN = 6  # widths


def check_strategy(strategy: str) -> None:
    if strategy not in STRATEGIES:
        near = difflib.get_close_matches(strategy, STRATEGIES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(STRATEGIES)}"
        raise UsageError(f"there is no strategy {strategy!r}: {hint}")


def refuse_spacious(bound: float, allowed: float) -> None:
    if bound <= allowed:
        raise UsageError(
            f"the budget of {units.joules(allowed)} an iteration already holds: the model costs "
            f"{units.joules(bound)}; give a smaller one"
        )


def refuse_impossible(prunable: Prunable, cost: Priced, allowed: float, now: float) -> None:
    """Narrower is not always cheaper, so the least is searched for."""
    widths = cheapest(prunable.response.full, cost.many)
    least = cost(widths)
    if least > allowed:
        pairs = [f"{g.name}: {w * g.channels_each}" for g, w in zip(prunable.groups, widths, strict=True)]
        shown = ", ".join(pairs[:SHOWN]) + (" ..." if pairs[SHOWN:] else "")
        raise UsageError(
            f"the budget of {units.joules(allowed)} an iteration cannot be met: the least that was found is "
            f"{units.joules(least)} ({units.percent(least / now)}), at the widths {shown}; give more than that"
        )


def refuse_dearer(pruned: Pruned) -> Pruned:
    """Fewer channels may cost more, where a device is good at round numbers of them. FLOPs are told as they are."""
    if pruned.share < 1 or pruned.strategy == "flops":
        return pruned
    how = "measured" if pruned.measured else "estimated"
    raise ModelError(
        f"every result is dearer than the original here (the best costs {units.percent(pruned.share)} of it, {how}): "
        "keep the original, or give a smaller budget"
    )


# A model that is ready to be pruned: its groups are found and tried once, its widths chosen as often as costs change.
#
# -> choose widths on the estimate     strategies, with layers that follow widths by arithmetic (response)
# -> narrow a copy, trace, estimate    exactly; if that is dearer than arithmetic said, choose again with less

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


# A model, a budget and a profile -> the model with fewer channels.
#
# copy, find groups, try each           probing
# -> choose widths on the estimate      pruner, strategies
# -> train original and result in turn  checking, where there is a device to do so; if the budget is missed, choose again


def prune(
    model: nn.Module,
    inputs: Any,
    budget: str | float,
    estimator: Estimator,
    strategy: str = "energy",
    *,
    keep: Collection[str] = (),
    confidence: float = 0.5,
    iterations: int | None = None,
    battery_joules: float | None = None,
    allocator: str = "system",
    seed: int = 0,
    name: str = "",
    short_training: ShortTraining | None = None,
    place: Place | None = None,
    on_progress: Progress = lambda done, total, words: None,
) -> Pruned:
    """`inputs` are the model's: a tensor, a tuple of them or a dict. The model itself is not changed.

    `short_training` judges the candidates of the random strategy; without one, they are trained on the inputs.
    `place` is where original and result are trained to see what they really cost; None leaves it at the estimate.
    """
    sure = deviations(confidence)
    pruner = Pruner(model, inputs, strategy, keep, seed, name, short_training, on_progress)
    joules = Joules(estimator, allocator, 0.0 if place else sure, pruner.network)
    allowed = partial(joules_allowed, budget, iterations=iterations, battery_joules=battery_joules)
    by_estimate = allowed(joules.estimate(pruner.network).joules)
    refuse_spacious(joules.of(pruner.network), by_estimate)
    if place is None:
        return refuse_dearer(pruner.pruned(joules, by_estimate, confidence))
    return refuse_dearer(prune_and_check(pruner, joules, estimator, allowed, confidence, place))
