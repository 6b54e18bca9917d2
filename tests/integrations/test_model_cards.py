"""Model cards with the energy of a training, as their schemas want it."""

import pytest
from tests.integrations.jobs import SimulatedBattery
from tests.synthetic import block, chain

from ampere import Budget
from ampere.core import Meter
from ampere.core.errors import UsageError
from ampere.estimation.estimate import Estimate
from ampere.estimation.running_costs import Tariff, parse_grids
from ampere.estimation.training_run import training_run
from ampere.integrations.model_cards import cyclonedx, hugging_face, spent
from ampere.storage import Observation

METER = Meter("cpu-time", False, "5 W per busy core", origin="the default", factor=2.0)
ESTIMATE = Estimate("net", 3600.0, 36.0, 60.0, (), (), (), METER, "system", device="a CPU")
RUN = training_run(ESTIMATE, 1000, tariff=Tariff(grids=parse_grids("DE"), facility_factor=1.2))  # 1 kWh


def test_an_estimated_run_gives_grams_and_says_that_it_is_modelled():
    record = hugging_face(spent(RUN, device="a CPU"), "fine-tuning")["co2_eq_emissions"]
    assert record["emissions"] == pytest.approx(1.2 * 380.95)
    assert record["geographical_location"] == "Germany"
    assert record["hardware_used"] == "a CPU"
    for words in ("estimated before training", "modelled, not measured", "factor of 2", "PUE 1.2", "Ember"):
        assert words in record["source"], words


def test_a_budget_that_counted_a_run_gives_what_was_counted():
    battery = SimulatedBattery()
    with Budget(1e9, meter=battery) as budget:
        for _ in range(3):
            battery.drained += 1.2e6
            budget.step()
    found = spent(budget, "400g/kWh")
    assert found.kwh == pytest.approx(1.0)
    assert found.grams == pytest.approx(400)
    assert "counted during training" in found.source


def test_a_recorded_run_gives_what_was_read():
    run = Observation(chain(3, 4), block(0.1, None, joules=0.36), "run")
    found = spent(run, "400g/kWh")
    assert found.joules == pytest.approx(sum(window.joules for window in run.measurement.target))
    assert not found.estimated


def test_hugging_faces_own_classes_take_and_keep_it():
    hub = pytest.importorskip("huggingface_hub")
    metadata = hugging_face(spent(RUN))
    card = hub.ModelCard(f"---\n{hub.ModelCardData(**metadata).to_yaml()}\n---\n# net\n")
    assert card.data.to_dict()["co2_eq_emissions"]["emissions"] == pytest.approx(1.2 * 380.95)
    assert set(metadata["co2_eq_emissions"]) <= {
        "emissions",
        "source",
        "training_type",
        "geographical_location",
        "hardware_used",
    }


def test_the_card_of_cyclonedx_has_what_its_schema_requires():
    considerations = cyclonedx(spent(RUN))["considerations"]["environmentalConsiderations"]
    [consumption] = considerations["energyConsumptions"]
    assert consumption.keys() >= {"activity", "energyProviders", "activityEnergyCost"}
    assert consumption["activityEnergyCost"] == {"value": pytest.approx(1.2), "unit": "kWh"}
    assert consumption["co2CostEquivalent"] == {"value": pytest.approx(1.2 * 380.95e-6), "unit": "tCO2eq"}
    [provider] = consumption["energyProviders"]
    assert provider.keys() >= {"organization", "energySource", "energyProvided"}


def test_a_bill_of_materials_with_it_is_valid_by_cyclonedx_own_schema():
    pytest.importorskip("cyclonedx", reason="cyclonedx-python-lib has the schema")
    pytest.importorskip("jsonschema", reason="cyclonedx-python-lib[json-validation] is not installed")
    import json

    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    component = {"type": "machine-learning-model", "name": "net", "modelCard": cyclonedx(spent(RUN), "fine-tuning")}
    bill = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": [component]}
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(bill)) is None


def test_what_a_card_cannot_say_is_one_line():
    with pytest.raises(UsageError, match="one grid"):
        spent(training_run(ESTIMATE, 10))
    with pytest.raises(UsageError, match="training_type"):
        hugging_face(spent(RUN), "from scratch")
