"""Joules that an iteration may cost, from how people write it: a share, joules of an iteration or a run, a battery."""

from __future__ import annotations

import math
import re
from statistics import NormalDist

from ampere.core.errors import UsageError

UNITS = {"J": 1.0, "mJ": 1e-3, "uJ": 1e-6, "µJ": 1e-6, "kJ": 1e3, "MJ": 1e6, "Wh": 3600.0, "mWh": 3.6, "kWh": 3.6e6}
_AMOUNT = re.compile(r"(?P<number>[0-9.]+(?:[eE][+-]?[0-9]+)?)\s*(?P<unit>%|[a-zA-Zµ]*)")
_REMEDY = "write a share such as 50%, joules of an iteration such as 5mJ, or joules of a run with --iterations"


def joules_allowed(
    budget: str | float, now: float, iterations: int | None = None, battery_joules: float | None = None
) -> float:
    """Joules of one iteration; `now` is what one costs before pruning."""
    amount, unit = _read(budget)
    if not unit and amount > 1 and battery_joules is not None:
        raise UsageError(f"a budget of {budget} of a battery is more than it holds: give 100% or less")
    if not unit and amount >= 1 and battery_joules is None:
        raise UsageError(f"a budget of {budget} leaves nothing to prune: {_REMEDY}")
    if unit and battery_joules is not None:
        raise UsageError(f"budget {budget} does not need a battery: write a share of it such as 10%, or leave it out")
    if unit:
        return amount * UNITS[unit] / (iterations or 1)
    if battery_joules is None:
        return amount * now
    if not iterations:
        raise UsageError(f"{budget} of a battery needs the length of the run: give --iterations")
    return amount * battery_joules / iterations


def part_of(budget: str | float, share: float) -> str:
    """A share of a budget, as the budget is written."""
    amount, unit = _read(budget)
    return f"{share * amount:.9g}{unit}"


def _read(budget: str | float) -> tuple[float, str]:
    """An amount and its unit; a share has none."""
    match = _AMOUNT.fullmatch(str(budget).strip())
    unit = match["unit"] if match else "?"
    try:
        amount = float(match["number"]) if match else math.nan
    except ValueError:
        amount = math.nan
    if not (math.isfinite(amount) and amount > 0) or unit not in ("", "%", *UNITS):
        raise UsageError(f"budget {budget!r} is not a positive amount of energy: {_REMEDY}")
    if unit not in ("", "%"):
        return amount, unit
    return amount / 100 if unit else amount, ""


def deviations(confidence: float) -> float:
    """The number of standard deviations above the estimate that must still be inside the budget."""
    if not 0.5 <= confidence < 1:
        raise UsageError(f"confidence must be from 50% to 99.9%, not {100 * confidence:g}%")
    return NormalDist().inv_cdf(confidence)
