"""A model, a budget and a profile -> the model with fewer channels.

copy, find groups, try each           probing
-> choose widths on the estimate      pruner, strategies
-> train original and result in turn  checking, where there is a device to do so; if the budget is missed, choose again
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING, Any

from ampere.estimation.estimate import Estimator

from .budget import deviations, joules_allowed
from .checking import Place, prune_and_check
from .price import Joules
from .probing import Progress
from .pruner import Pruner
from .refusals import refuse_dearer, refuse_spacious
from .result import Pruned
from .trying import ShortTraining

if TYPE_CHECKING:
    from torch import nn


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
