"""What is said of budgets that ask for nothing, or for too much."""

from __future__ import annotations

import difflib

from ampere.core import units
from ampere.core.errors import ModelError, UsageError
from ampere.pruning.strategies import STRATEGIES
from ampere.pruning.strategies.searching import cheapest

from .price import Priced
from .probing import Prunable
from .result import Pruned

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
