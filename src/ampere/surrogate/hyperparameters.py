"""How much may layers of a kind deviate from physics, and over how many octaves do they deviate alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from ampere.network.kinds import USUAL_WIDTH, VECTOR_WIDTHS

from .features import Array


@dataclass(frozen=True)
class Hyperparameters:
    residual: float = 0.12  # standard deviation of a layer around physics, relative
    octaves: float = 4.0  # length scale along sizes
    waste_octaves: float = 1.5  # length scale along the distance from the vector width
    own: float = 0.15  # share of that variance that a layer has with no other, however close
    network: float = 0.03  # what whole networks deviate from their layers' sum, relative
    floor: float = 0.01  # noise that no number of repeats removes, relative
    allocator: float = 0.06  # what the system's allocator adds, around its mean
    vector_width: int = USUAL_WIDTH  # at whose multiples costs step on this device
    calibration: float = 1.0  # factor on standard deviations, from leave-one-out residuals

    def to_json(self) -> dict[str, float]:
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Hyperparameters:
        values: dict[str, Any] = {name: float(record[name]) for name in cls.__dataclass_fields__ if name in record}
        if not all(np.isfinite(v) and v > 0 for v in values.values()):
            raise ValueError("a hyperparameter is not a positive number")
        values["vector_width"] = int(values.get("vector_width", USUAL_WIDTH))
        if values["vector_width"] not in VECTOR_WIDTHS:
            raise ValueError(f"a vector width of {values['vector_width']} is none of {VECTOR_WIDTHS}")
        return cls(**values)


LEARNT = ("residual", "octaves", "waste_octaves", "own", "network", "floor", "allocator")
TYPICAL = Hyperparameters()
MOST_OWN = 0.9
PRIOR_WIDTH = 0.7  # of the logarithm: a factor of two either way is unremarkable


def fit_hyperparameters(
    evidence: Callable[[Hyperparameters], float], start: Hyperparameters, evaluations: int
) -> Hyperparameters:
    """The most probable values: log marginal likelihood plus a log-normal prior around the typical ones."""
    typical = np.log([getattr(TYPICAL, name) for name in LEARNT])

    def unpack(logs: Array) -> Hyperparameters:
        learnt = dict(zip(LEARNT, np.exp(logs).tolist(), strict=True))
        return replace(start, **{**learnt, "own": min(learnt["own"], MOST_OWN)})

    def loss(logs: Array) -> float:
        bounded = np.clip(logs, typical - 3, typical + 3)
        return float(0.5 * np.sum(((logs - typical) / PRIOR_WIDTH) ** 2) - evidence(unpack(bounded)))

    first = np.log([getattr(start, name) for name in LEARNT])
    simplex = np.vstack([first, first + 0.5 * np.eye(len(LEARNT))])
    options = {"maxfev": evaluations, "initial_simplex": simplex, "xatol": 0.05, "fatol": 0.05}
    best = minimize(loss, first, method="Nelder-Mead", options=options).x
    return unpack(np.clip(best, typical - 3, typical + 3))
