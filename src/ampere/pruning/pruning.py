"""A model, a budget and a profile -> the model with fewer channels.

copy, find groups, try each          probing
-> choose widths on the estimate     strategies, with layers that follow widths by arithmetic (response)
-> narrow a copy, trace, estimate    exactly; if that is dearer than arithmetic said, choose again with less
"""

from __future__ import annotations

import difflib
import random
from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING, Any

from ampere import units
from ampere.errors import ModelError, UsageError
from ampere.estimation import Estimator
from ampere.network import Network
from ampere.tracing import trace

from .budget import deviations, joules_allowed
from .price import Flops, Joules, Price, Priced
from .probing import Progress, Prunable, probe
from .response import Widths
from .result import Pruned, Width
from .strategies import STRATEGIES, Chosen, Problem
from .strategies.searching import cheapest
from .structure import without
from .trying import ShortTraining, best, on_inputs

if TYPE_CHECKING:
    from torch import nn

TRIES = 5
CANDIDATES = 8  # of the random strategy
NEAR = 0.003  # so little more than its trace costs, arithmetic left nothing of the budget unused


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
    on_progress: Progress = lambda done, total, words: None,
) -> Pruned:
    """`inputs` are the model's: a tensor, a tuple of them or a dict. The model itself is not changed.

    `short_training` judges the candidates of the random strategy; without one, they are trained on the inputs.
    """
    check_strategy(strategy)
    inputs = inputs if isinstance(inputs, dict) else tuple(inputs) if isinstance(inputs, (list, tuple)) else (inputs,)
    sure = deviations(confidence)
    network = trace(model, inputs, name=name)
    joules = Joules(estimator, allocator, sure, network)
    before = estimator.estimate(network, allocator)
    allowed = joules_allowed(budget, before.joules, iterations, battery_joules)
    _refuse_spacious(joules.of(network), allowed)
    prunable = probe(model, inputs, network, keep, on_progress)
    price: Price = Flops(network, before.joules) if strategy == "flops" else joules
    cost = Priced(prunable.response, price)
    _refuse_impossible(prunable, cost, allowed, before.joules)
    find = partial(_within, prunable, inputs, cost, allowed, strategy, name=name, progress=on_progress)
    if strategy == "random":
        candidates = [find(f"{seed} {number}") for number in range(CANDIDATES)]
        on_progress(0, 1, f"training {CANDIDATES} candidates for a moment")
        place = best([model for _, model, _ in candidates], short_training or on_inputs(inputs))
        chosen, pruned, after = candidates[place]
    else:
        chosen, pruned, after = find(seed)
    left = zip(prunable.groups, _left(prunable, chosen), strict=True)
    widths = [Width(g.name, g.width * g.channels_each, width * g.channels_each) for g, width in left]
    return Pruned(
        pruned,
        strategy,
        allowed,
        confidence,
        (network, after),
        before,
        estimator.estimate(after, allocator),
        joules.of(after),
        tuple(widths),
        prunable.fixed,
    )


def _within(
    prunable: Prunable,
    inputs: Any,
    cost: Priced,
    allowed: float,
    strategy: str,
    seed: int | str,
    name: str,
    progress: Progress,
) -> tuple[Chosen, nn.Module, Network]:
    """Chosen by arithmetic, judged by a trace of the narrowed model itself; again where arithmetic was off."""
    aim, most, least = allowed, 0.0, float("inf")
    found: tuple[Chosen, nn.Module, Network] | None = None
    for done in range(TRIES):
        progress(done, TRIES, "choosing widths")
        problem = Problem([g.importance for g in prunable.groups], cost, aim, random.Random(seed), cost.many)
        chosen = STRATEGIES[strategy](problem)
        if chosen is None:
            break
        removed = {group.name: chosen[i] for i, group in enumerate(prunable.groups)}
        pruned = without(prunable.model, prunable.groups, removed)
        network = trace(pruned, inputs, name=name)
        exact, said = cost.price.of(network), cost(_left(prunable, chosen))
        least = min(least, exact)
        if most < exact <= allowed:
            found, most = (chosen, pruned, network), exact
        if exact <= allowed and said <= (1 + NEAR) * exact:
            break
        aim = 0.999 * allowed * said / exact
    if found:
        return found
    seen = f" surely enough: the least that it found is {units.joules(least)}" if least < float("inf") else ""
    raise ModelError(
        f"{strategy} finds no widths that meet the budget of {units.joules(allowed)} an iteration{seen}; "
        "give more, or a lower confidence, or profile this very model"
    )


def _left(prunable: Prunable, chosen: Chosen) -> Widths:
    return tuple(group.width - len(chosen[i]) for i, group in enumerate(prunable.groups))


def check_strategy(strategy: str) -> None:
    if strategy not in STRATEGIES:
        near = difflib.get_close_matches(strategy, STRATEGIES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(STRATEGIES)}"
        raise UsageError(f"there is no strategy {strategy!r}: {hint}")


def _refuse_spacious(bound: float, allowed: float) -> None:
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
        shown = ", ".join(pairs[:6]) + (" ..." if pairs[6:] else "")
        raise UsageError(
            f"the budget of {units.joules(allowed)} an iteration cannot be met: the least that was found is "
            f"{units.joules(least)} ({units.percent(least / now)}), at the widths {shown}; give more than that"
        )
