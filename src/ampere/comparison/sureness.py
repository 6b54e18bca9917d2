"""How sure a ratio of two costs is.

r    a / b                      s    standard deviation of log r

P(a is cheaper) = Phi(-log r / s)         90 %: r exp(-+ 1.645 s)
"""

from __future__ import annotations

from math import erf, exp, log, sqrt

from ampere.estimation import Z90

SURE = 0.9  # below this the two cannot be told apart


def chance_below_one(ratio: float, relative_stddev: float) -> float:
    if relative_stddev == 0:
        return 0.5 if ratio == 1 else float(ratio < 1)
    return 0.5 * (1 + erf(-log(ratio) / relative_stddev / sqrt(2)))


def interval90(ratio: float, relative_stddev: float) -> tuple[float, float]:
    apart = exp(Z90 * relative_stddev)
    return ratio / apart, ratio * apart


def in_percent(probability: float) -> str:
    """Never more certain than an estimate can be."""
    return "over 99.9 %" if probability > 0.999 else f"{100 * probability:.{1 if probability > 0.99 else 0}f} %"
