"""Ways to choose widths, by name."""

from __future__ import annotations

from ampere.pruning.strategies import magnitude, per_joule, random_widths

from .problem import Chosen, Problem, Strategy

STRATEGIES: dict[str, Strategy] = {
    "energy": per_joule.choose,
    "magnitude": magnitude.choose,
    "random": random_widths.choose,
    "flops": per_joule.choose,  # the same search, with FLOPs for joules
}

__all__ = ["STRATEGIES", "Chosen", "Problem", "Strategy"]
