"""A model, a budget and a profile -> the model with fewer channels.

copy, find groups, try each           probing: once for a model
-> choose widths on the estimate      strategies, with layers that depend on widths by arithmetic (price)
-> narrow a copy, trace, estimate     exactly; where that costs more than arithmetic said, choose again with less
-> train original and result in turn  checking, where there is a device to do so; if the budget is missed, choose again
"""

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
from ampere.estimation.estimator import Estimator
from ampere.models.loading import LoadedModel
from ampere.tracing.trace import trace

from .budget import deviations, joules_allowed
from .checking import Check, prune_and_check
from .price import Flops, Joules, Price, Priced, Widths
from .probing import Progress, Prunable, probe
from .restoration import Removal, removals, restored, some_batches
from .result import Pruned, Width
from .strategies import STRATEGIES
from .structure import without
from .widths import Chosen, Problem, cheapest

if TYPE_CHECKING:
    from torch import nn

TRIES = 5
CANDIDATES = 8  # of the random strategy
NEAR = 0.003  # where arithmetic says at most this much more than the trace costs, it left no budget unused
WIDTHS_SHOWN = 6
STEPS, RATE = 20, 0.01  # of a short training
RESTORING = "energy_aware"  # the strategy that looks at outputs, and restores them

ShortTraining = Callable[["nn.Module"], float]  # a copy of a candidate -> its loss afterwards


def prune(
    model: nn.Module | LoadedModel,
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
    calibration: Sequence[Any] = (),
    check: Check | None = None,
    on_progress: Progress = lambda done, total, words: None,
) -> Pruned:
    """A copy of a model with fewer channels, inside a budget. The model itself is not changed.

    `inputs` are the model's: a tensor, a tuple of them or a dict; None means those of a loaded model.
    `short_training` judges the candidates of the random strategy; without one, they are trained on the inputs.
    `calibration` are batches of inputs that the energy_aware strategy compares outputs on; without, some are made up.
    `check` says where original and result are trained to measure what they cost; None relies on the estimate.
    """
    original = _loaded(model, inputs, name)
    pruner = Pruner(original, strategy, keep, seed, short_training, on_progress, calibration)
    joules = Joules(estimator, allocator, 0.0 if check else deviations(confidence), pruner.network)
    allowed = partial(joules_allowed, budget, iterations=iterations, battery_joules=battery_joules)
    by_estimate = allowed(joules.estimate(pruner.network).joules)
    _refuse_budget_that_holds(joules.of(pruner.network), by_estimate)
    if check is None:
        return _refuse_more_expensive(pruner.pruned(joules, by_estimate, confidence))
    return _refuse_more_expensive(prune_and_check(pruner, joules, estimator, allowed, confidence, check))


def _loaded(model: nn.Module | LoadedModel, inputs: Any, name: str) -> LoadedModel:
    if isinstance(model, LoadedModel) and inputs is None:
        return model
    plain = _as_inputs(inputs)
    if isinstance(model, LoadedModel):
        return LoadedModel(model.model, plain, name or model.name, model.factory, model.arguments, model.space)
    return LoadedModel(model, plain, name, None)


def _as_inputs(inputs: Any) -> Any:
    """Arguments of a model: a dict, or a tuple of them."""
    one = not isinstance(inputs, (dict, list, tuple))
    return inputs if isinstance(inputs, dict) else (inputs,) if one else tuple(inputs)


class Candidate(NamedTuple):
    chosen: Chosen
    model: nn.Module
    network: Network


class Pruner:
    """A model that is ready to be pruned: its groups are found once, its widths chosen whenever costs change."""

    def __init__(
        self,
        original: LoadedModel,
        strategy: str,
        keep: Collection[str] = (),
        seed: int = 0,
        short_training: ShortTraining | None = None,
        on_progress: Progress = lambda done, total, words: None,
        calibration: Sequence[Any] = (),
        by_flops: bool = False,
    ) -> None:
        """`by_flops` counts FLOPs in place of joules, to compare with."""
        check_strategy(strategy)
        self._by_flops = by_flops or strategy == "flops"
        self.original, self.strategy, self.progress = original, strategy, on_progress
        self.network = trace(original.model, original.inputs, name=original.name)
        self._keep, self._seed, self._calibration = keep, seed, [_as_inputs(batch) for batch in calibration]
        self._short_training = short_training or on_inputs(original.inputs)

    @cached_property
    def prunable(self) -> Prunable:
        return probe(self.original.model, self.original.inputs, self.network, self._keep, self.progress)

    def pruned(self, joules: Joules, allowed: float, confidence: float) -> Pruned:
        """The model inside the joules allowed, as they are priced; FLOPs are held to the same share of themselves."""
        before = joules.estimate(self.network)
        price: Price = Flops(self.network, before.joules) if self._by_flops else joules
        cost = Priced(self.prunable.response, price)
        _refuse_impossible(self.prunable, cost, allowed, before.joules)
        found = self._best(cost, allowed) if self.strategy == "random" else self._within(cost, allowed, self._seed)
        left = zip(self.prunable.groups, self._left(found.chosen), strict=True)
        return Pruned(
            self._restored(found),
            self.strategy,
            allowed,
            confidence,
            (self.network, found.network),
            before,
            joules.estimate(found.network),
            joules.of(found.network),
            tuple(Width(g.name, g.width * g.channels_each, width * g.channels_each) for g, width in left),
            self.prunable.fixed,
            self.original,
        )

    @cached_property
    def _removals(self) -> Sequence[Removal]:
        """What the outputs of layers lose, where the strategy looks at them."""
        if self.strategy != RESTORING:
            return ()
        self.progress(0, 1, "comparing outputs of layers")
        return removals(self.prunable.model, self.prunable.groups, self._batches)

    @cached_property
    def _batches(self) -> Sequence[Any]:
        return self._calibration or some_batches(self.original.inputs, self._seed)

    def _restored(self, found: Candidate) -> nn.Module:
        if self.strategy != RESTORING:
            return found.model
        groups = self.prunable.groups
        removed = {group.name: found.chosen[i] for i, group in enumerate(groups)}
        return restored(self.prunable.model, found.model, groups, removed, self._batches)

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
            importance = [g.importance for g in groups]
            problem = Problem(importance, cost, aim, random.Random(seed), cost.many, self._removals)
            chosen = STRATEGIES[self.strategy](problem)
            if chosen is None:
                break
            narrowed = without(self.prunable.model, groups, {group.name: chosen[i] for i, group in enumerate(groups)})
            network = trace(narrowed, self.original.inputs, name=self.network.name)
            exact, predicted = cost.price.of(network), cost(self._left(chosen))
            least = min(least, exact)
            if most < exact <= allowed:
                found, most = Candidate(chosen, narrowed, network), exact
            if exact <= allowed and predicted <= (1 + NEAR) * exact:
                break
            aim = 0.999 * allowed * predicted / exact
        if found:
            return found
        cheapest_found = f" (the least that it found is {units.joules(least)})" if least < float("inf") else ""
        raise ModelError(
            f"{self.strategy} finds no widths that meet the budget of {units.joules(allowed)} an iteration"
            f"{cheapest_found}: give a larger budget, a lower confidence, or profile this model"
        )

    def _left(self, chosen: Chosen) -> Widths:
        return tuple(group.width - len(chosen[i]) for i, group in enumerate(self.prunable.groups))


# The random strategy takes the candidate that learns best in a few steps, as the paper does.


def on_inputs(inputs: Any) -> ShortTraining:
    """A training on the example inputs, with labels that stay the same: all there is without the user's data."""

    def train(model: nn.Module) -> float:
        import torch

        from ampere.runtimes.plain_script import training_loss

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
    """The index of the candidate with the least loss; those whose loss is not a number are left out."""
    losses = [float(train(copy.deepcopy(model))) for model in candidates]
    finite = [(loss, index) for index, loss in enumerate(losses) if math.isfinite(loss)]
    if not finite:
        raise ModelError(
            f"the short training of all {len(losses)} random candidates ended in a loss that is not a number: "
            "check the model's inputs and weights for NaN, or use --strategy energy, which trains nothing"
        )
    return min(finite)[1]


# Budgets and strategies that are refused.


def check_strategy(strategy: str) -> None:
    if strategy not in STRATEGIES:
        near = difflib.get_close_matches(strategy, STRATEGIES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(STRATEGIES)}"
        raise UsageError(f"there is no strategy {strategy!r}: {hint}")


def _refuse_budget_that_holds(bound: float, allowed: float) -> None:
    if bound <= allowed:
        raise UsageError(
            f"the budget of {units.joules(allowed)} an iteration already holds: the model costs "
            f"{units.joules(bound)}; give a smaller one"
        )


def _refuse_impossible(prunable: Prunable, cost: Priced, allowed: float, now: float) -> None:
    """Narrower is not always cheaper, so the least is searched for."""
    widths = cheapest(prunable.response.full, cost.many)
    least = cost(widths)
    if least > allowed:
        pairs = [f"{g.name}: {w * g.channels_each}" for g, w in zip(prunable.groups, widths, strict=True)]
        shown = ", ".join(pairs[:WIDTHS_SHOWN]) + (" ..." if pairs[WIDTHS_SHOWN:] else "")
        raise UsageError(
            f"the budget of {units.joules(allowed)} an iteration cannot be met: the least that was found is "
            f"{units.joules(least)} ({units.percent(least / now)}), at the widths {shown}; give more than that"
        )


def _refuse_more_expensive(pruned: Pruned) -> Pruned:
    """Fewer channels may cost more on a device that is good at round numbers of them. FLOPs are returned as found."""
    if pruned.share < 1 or pruned.strategy == "flops":
        return pruned
    origin = "measured" if pruned.measured else "estimated"
    raise ModelError(
        f"every result is more expensive than the original (the best costs {units.percent(pruned.share)} of it, "
        f"{origin}): keep the original, or give a smaller budget"
    )
