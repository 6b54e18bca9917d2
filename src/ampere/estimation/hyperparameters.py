"""How much may layers of a kind deviate from physics, and over how many octaves do they deviate alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ampere.core.kinds import USUAL_WIDTH, VECTOR_WIDTHS

from .features import ONE_BY_ONE, PRIOR_PRICES, Array, is_waste


@dataclass(frozen=True)
class Hyperparameters:
    residual: float = 0.12  # standard deviation of a layer around physics, relative
    octaves: float = 4.0  # length scale along sizes
    waste_octaves: float = 1.5  # length scale along the distance from the vector width
    own: float = 0.15  # share of that variance that a layer has with no other, however close
    network: float = 0.03  # what whole networks deviate from their layers' sum, relative
    floor: float = 0.01  # noise that no number of repeats removes, relative
    grain: float = 0.01  # further noise of a measurement of median cost; cheaper ones have more, as 1 / sqrt(cost)
    allocator: float = 0.06  # what the system's allocator adds, around its mean
    vector_width: int = USUAL_WIDTH  # at whose multiples costs step on this device
    one_by_one: bool = False  # whether the runtime does channels beyond the last full vector one by one
    calibration: float = 1.0  # factor on standard deviations, from held-out residuals
    spread: Mapping[str, float] = field(default_factory=dict)  # a kind's own factor on `residual`
    stretch: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # and on the scale along each coordinate

    @property
    def prices_before(self) -> Array:
        """Anything was measured."""
        return ONE_BY_ONE if self.one_by_one else PRIOR_PRICES

    def residual_of(self, kind: str) -> float:
        return self.residual * self.spread.get(kind, 1.0)

    def lengths(self, kind: str, coordinates: int) -> Array:
        """A kind's length scales. What was stored for another number of coordinates is of another time: not used."""
        usual = np.where(is_waste(kind, coordinates), self.waste_octaves, self.octaves)
        factors = self.stretch.get(kind, ())
        return usual * np.array(factors) if len(factors) == coordinates else usual

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Hyperparameters:
        values: dict[str, Any] = {name: float(record[name]) for name in NUMBERS if name in record}
        spread = {str(k): float(v) for k, v in dict(record.get("spread", {})).items()}
        stretch = {str(k): tuple(map(float, v)) for k, v in dict(record.get("stretch", {})).items()}
        everything = [*values.values(), *spread.values(), *(v for factors in stretch.values() for v in factors)]
        if not all(np.isfinite(v) and v > 0 for v in everything):
            raise ValueError("a hyperparameter is not a positive number")
        values["vector_width"] = int(values.get("vector_width", USUAL_WIDTH))
        if values["vector_width"] not in VECTOR_WIDTHS:
            raise ValueError(f"a vector width of {values['vector_width']} is none of {VECTOR_WIDTHS}")
        return cls(**values, one_by_one=record.get("one_by_one") is True, spread=spread, stretch=stretch)


NOT_NUMBERS = ("one_by_one", "spread", "stretch")


NUMBERS = tuple(name for name in Hyperparameters.__dataclass_fields__ if name not in NOT_NUMBERS)
