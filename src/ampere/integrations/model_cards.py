"""The energy of a training in a model card: Hugging Face's `co2_eq_emissions` and CycloneDX' `energyConsumptions`.

TrainingRun, estimated before --+
                                +--> Spent --> hugging_face(...)   metadata of a README.md
Budget, or a run it recorded ---+          --> cyclonedx(...)      modelCard of a component, CycloneDX 1.6
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ampere.core.errors import UsageError
from ampere.estimation.running_costs import Grid, Tariff, parse_facility_factor, parse_grids
from ampere.estimation.training_run import TrainingRun
from ampere.storage.profile import Observation

if TYPE_CHECKING:
    from ampere.budget import Budget
    from ampere.core import Meter

ACTIVITIES = {"pre-training": "training", "fine-tuning": "fine-tuning"}  # Hugging Face's word -> CycloneDX'
GRAMS_PER_TONNE = 1e6


@dataclass(frozen=True)
class Spent:
    """Joules of a whole training, where they come from, and the grid that gave them."""

    joules: float
    meter: Meter
    estimated: bool  # before the training; else counted during it
    grid: Grid
    facility_factor: float = 1.0
    device: str = ""

    @property
    def kwh(self) -> float:
        return Tariff(facility_factor=self.facility_factor).kwh(self.joules)

    @property
    def grams(self) -> float:
        return self.kwh * self.grid.grams_per_kwh

    @property
    def source(self) -> str:
        """How sure a reader can be: estimated or counted, measured or modelled, and whose grams."""
        when = "estimated before training" if self.estimated else "counted during training"
        how = "simulated" if self.meter.simulated else "measured" if self.meter.measured else "modelled, not measured,"
        factor = f", within a factor of {self.meter.factor:.2g}" if self.meter.factor != 1 else ""
        scope = f" ({self.meter.scope}{factor})" if self.meter.scope else ""
        facility = f", PUE {self.facility_factor:g}" if self.facility_factor != 1 else ""
        grams = f"{self.grid.grams_per_kwh:g} gCO2e/kWh ({self.grid.source})"
        return f"Ampere: {self.kwh:.4g} kWh {when}, {how} by {self.meter.name}{scope}{facility}; {grams}"


def spent(
    training: TrainingRun | Budget | Observation,
    grid: str | float | None = None,
    *,
    pue: float | None = None,
    device: str = "",
) -> Spent:
    """What a training costs.

    `training` is `ampere.estimate(..., iterations=...).run`, a Budget that counted it, or a run that a Budget recorded
    (`profile.runs[-1]`), of which its newest readings are kept. `grid` and `pue` are as in `estimate`; a run that was
    estimated with them has its own.
    """
    own = training.tariff if isinstance(training, TrainingRun) else Tariff()
    grids = parse_grids(grid) if grid is not None else own.grids
    if len(grids) != 1:
        raise UsageError("a model card names one grid: give grid='DE', or grid='400g/kWh'")
    factor = own.facility_factor if pue is None else parse_facility_factor(pue)
    if isinstance(training, TrainingRun):
        return Spent(training.gross.mean, training.meter, True, grids[0], factor, device)
    if isinstance(training, Observation):
        joules = sum(window.joules or 0.0 for window in training.measurement.target)
        return Spent(joules, training.measurement.meter, False, grids[0], factor, device)
    return Spent(training.spent, training.meter, False, grids[0], factor, device)


def hugging_face(spent: Spent, training_type: str = "pre-training") -> dict[str, Any]:
    """Metadata for a model card: `ModelCardData(**metadata)` or the head of a README.md."""
    _check(training_type)
    record: dict[str, Any] = {
        "emissions": spent.grams,
        "source": spent.source,
        "training_type": training_type,
        "geographical_location": spent.grid.region,
    }
    if spent.device:
        record["hardware_used"] = spent.device
    return {"co2_eq_emissions": record}


def cyclonedx(spent: Spent, training_type: str = "pre-training", *, provider: str = "unknown") -> dict[str, Any]:
    """The `modelCard` of a machine-learning component in CycloneDX 1.6; `provider` is who sells the electricity."""
    _check(training_type)
    energy = {"value": spent.kwh, "unit": "kWh"}
    consumption = {
        "activity": ACTIVITIES[training_type],
        "energyProviders": [
            {
                "description": spent.grid.region,
                "organization": {"name": provider},
                "energySource": "unknown",
                "energyProvided": energy,
            }
        ],
        "activityEnergyCost": energy,
        "co2CostEquivalent": {"value": spent.grams / GRAMS_PER_TONNE, "unit": "tCO2eq"},
        "properties": [{"name": "ampere:source", "value": spent.source}],
    }
    return {"considerations": {"environmentalConsiderations": {"energyConsumptions": [consumption]}}}


def _check(training_type: str) -> None:
    if training_type not in ACTIVITIES:
        raise UsageError(f"training_type {training_type!r} is none of {', '.join(ACTIVITIES)}")
