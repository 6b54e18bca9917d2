"""The most probable hyperparameters: evidence plus a log-normal prior around typical values, climbed by its slope."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from .evidence import Slopes
from .features import Array
from .hyperparameters import Hyperparameters

LEARNT = ("residual", "octaves", "waste_octaves", "own", "network", "floor", "grain", "allocator")
TYPICAL = Hyperparameters()
PRIOR_WIDTH = {"grain": 1.5}  # of the logarithm
USUAL_PRIOR_WIDTH = 0.7  # a factor of two either way is unremarkable
FARTHEST = 3.0  # from typical, in logarithms
MOST_OWN = 0.9


class OutOfTime(Exception):
    """The search has used up its seconds: the best so far is the answer."""


def most_probable(
    evidence: Callable[[Hyperparameters], tuple[float, Slopes]],
    coordinates: Mapping[str, int],
    start: Hyperparameters,
    evaluations: int,
    seconds: float = float("inf"),
) -> Hyperparameters:
    """`coordinates` says of each layer kind how many it has; what `start` knows of other kinds is kept."""
    from scipy.optimize import minimize

    layout = _Layout(coordinates)
    best, lowest, began = layout.pack(start), float("inf"), time.perf_counter()

    def loss(logs: Array) -> tuple[float, Array]:
        nonlocal best, lowest
        if time.perf_counter() - began > seconds and lowest < float("inf"):
            raise OutOfTime
        value, slopes = evidence(layout.unpack(logs, start))
        off = (logs - layout.typical) / layout.widths
        total = 0.5 * float(off @ off) - value
        if total < lowest:
            best, lowest = logs.copy(), total
        return total, off / layout.widths - layout.flat(slopes)

    first, bounds = np.clip(best, layout.low, layout.high), np.stack([layout.low, layout.high], axis=1)
    with suppress(OutOfTime):
        minimize(loss, first, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxfun": evaluations, "ftol": 2e-5})
    return layout.unpack(best, start)


class _Layout:
    """Hyperparameters as one vector of logarithms: those of all kinds, then each kind's spread and stretches."""

    def __init__(self, coordinates: Mapping[str, int]) -> None:
        self._kinds = dict(coordinates)
        self._keys = [*LEARNT, *(key for kind in self._kinds for key in (f"spread.{kind}", f"stretch.{kind}"))]
        self._sizes = [self._kinds[key[8:]] if key.startswith("stretch.") else 1 for key in self._keys]
        self.typical = self.pack(TYPICAL)
        widths = [PRIOR_WIDTH.get(key, USUAL_PRIOR_WIDTH) for key in self._keys]
        self.widths = np.repeat(widths, self._sizes)
        self.low, self.high = self.typical - FARTHEST, self.typical + FARTHEST
        self.high[LEARNT.index("own")] = np.log(MOST_OWN)

    def pack(self, hyper: Hyperparameters) -> Array:
        values = [getattr(hyper, name) for name in LEARNT]
        for kind, count in self._kinds.items():
            known = hyper.stretch.get(kind, ())
            values += [hyper.spread.get(kind, 1.0), *(known if len(known) == count else np.ones(count))]
        return np.log(np.array(values, dtype=float))

    def unpack(self, logs: Array, start: Hyperparameters) -> Hyperparameters:
        parts = dict(zip(self._keys, np.split(np.exp(logs), np.cumsum(self._sizes)[:-1]), strict=True))
        spread = {kind: float(parts[f"spread.{kind}"][0]) for kind in self._kinds}
        stretch = {kind: tuple(parts[f"stretch.{kind}"].tolist()) for kind in self._kinds}
        numbers: dict[str, Any] = {name: float(parts[name][0]) for name in LEARNT}
        return replace(start, **numbers, spread={**start.spread, **spread}, stretch={**start.stretch, **stretch})

    def flat(self, slopes: Slopes) -> Array:
        if not slopes:  # no covariance at all: nothing to go by
            return np.zeros(len(self.typical))
        return np.concatenate([np.atleast_1d(slopes[key]) for key in self._keys])
