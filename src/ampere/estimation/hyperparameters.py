"""Hyperparameters of the additive surrogate: how much layers deviate from physics, and how far that extends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ampere.core.kinds import USUAL_WIDTH, VECTOR_WIDTHS
from ampere.core.kinds.products import ROW_TILES

from .features import ONE_BY_ONE, PRIOR_PRICES, Array, is_waste

LEAST, LARGEST, MOST = 1e-6, 1e4, 10_000  # what may be read; the search stays far within
BEFORE_ROW_TILES = 6  # coordinates of linear layers in profiles from before accelerators
DIVERSE = {"operation": 8.0}  # before it is learnt: what one operation costs says little of another
NOT_NUMBERS = ("one_by_one", "spread", "stretch")


@dataclass(frozen=True)
class Hyperparameters:
    """Hyperparameters of the additive surrogate, with typical values as defaults."""

    residual: float = 0.12  # relative standard deviation of a layer around physics
    octaves: float = 4.0  # length scale along sizes
    waste_octaves: float = 1.5  # length scale along the distance from the vector width
    own: float = 0.15  # share of that variance that a layer shares with no other, however similar
    network: float = 0.03  # relative deviation of whole networks from their layers' sum
    floor: float = 0.01  # relative noise that no number of repeats removes
    grain: float = 0.01  # further noise of a measurement of median cost; cheaper ones have more, as 1 / sqrt(cost)
    allocator: float = 0.06  # relative standard deviation of what the system's allocator adds, around its mean
    vector_width: int = USUAL_WIDTH  # of the device: costs jump at multiples of it
    one_by_one: bool = False  # whether the runtime computes channels beyond the last full vector one by one
    calibration: float = 1.0  # factor on standard deviations, from held-out residuals
    spread: Mapping[str, float] = field(default_factory=dict)  # a kind's own factor on `residual`
    stretch: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # and on the scale along each coordinate

    @property
    def prior_prices(self) -> Array:
        """The price of each physics column before anything was measured."""
        return ONE_BY_ONE if self.one_by_one else PRIOR_PRICES

    def residual_of(self, kind: str) -> float:
        """A kind's relative standard deviation around physics."""
        return self.residual * self.spread_of(kind)

    def spread_of(self, kind: str) -> float:
        """A kind's own factor on the residual."""
        return self.spread.get(kind, DIVERSE.get(kind, 1.0))

    def lengths(self, kind: str, coordinates: int) -> Array:
        """A kind's length scales."""
        usual = np.where(is_waste(kind, coordinates), self.waste_octaves, self.octaves)
        return usual * np.array(self.stretches(kind, coordinates))

    def stretches(self, kind: str, coordinates: int) -> tuple[float, ...]:
        """A kind's factors on the scale along each coordinate; ones for another number of coordinates are not used."""
        factors = self.stretch.get(kind, ())
        if kind == "linear" and len(factors) == BEFORE_ROW_TILES:
            factors = (*factors, *(1.0 for _ in ROW_TILES))
        return factors if len(factors) == coordinates else (1.0,) * coordinates

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Hyperparameters:
        values: dict[str, Any] = {name: float(record[name]) for name in NUMBERS if name in record}
        spread = {str(k): float(v) for k, v in dict(record.get("spread", {})).items()}
        stretch = {str(k): tuple(map(float, v)) for k, v in dict(record.get("stretch", {})).items()}
        everything = [*values.values(), *spread.values(), *(v for factors in stretch.values() for v in factors)]
        if len(everything) > MOST or not all(LEAST <= v <= LARGEST for v in everything):
            raise ValueError(
                f"a hyperparameter is not between {LEAST:g} and {LARGEST:g}, or there are more than {MOST:,}"
            )
        if values.get("own", 0.0) > 1:
            raise ValueError("the hyperparameter own is a share, and not more than 1")
        values["vector_width"] = int(values.get("vector_width", USUAL_WIDTH))
        if values["vector_width"] not in VECTOR_WIDTHS:
            raise ValueError(f"the vector width {values['vector_width']} is not one of {VECTOR_WIDTHS}")
        return cls(**values, one_by_one=record.get("one_by_one") is True, spread=spread, stretch=stretch)


NUMBERS = tuple(name for name in Hyperparameters.__dataclass_fields__ if name not in NOT_NUMBERS)
