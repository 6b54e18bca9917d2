"""The interval of a cost that is known by its mean and standard deviation.

m  mean        s  standard deviation        v = log(1 + (s / m)^2)  variance of the logarithm

A cost is never below 0 and may be several times what is estimated, so its logarithm is taken for normal:
90 % lie between  m exp(-v / 2 -+ 1.645 sqrt(v)),  which is  m -+ 1.645 s  where s is small.
"""

from __future__ import annotations

from math import exp, log1p, sqrt

Z90 = 1.6449  # standard deviations on each side that hold 90 % of a normal distribution


def interval90(mean: float, stddev: float) -> tuple[float, float]:
    """What 90 % of a cost with this mean and standard deviation lie between."""
    if mean <= 0:
        return 0.0, max(0.0, mean + Z90 * stddev)
    variance = log1p((stddev / mean) ** 2)
    apart = Z90 * sqrt(variance)
    return mean * exp(-variance / 2 - apart), mean * exp(-variance / 2 + apart)
