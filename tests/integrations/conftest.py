import pytest
from tests.integrations.jobs import SimulatedBattery
from tests.recordings import record
from tests.synthetic import chain, random_chains

from ampere import Budget, Profile
from ampere.devices.simulated import SimulatedWorker


@pytest.fixture(autouse=True)
def every_step_is_read(monkeypatch):
    """Steps here take no time; real ones take longer than many readings."""
    monkeypatch.setattr("ampere.budget.spending.READINGS_APART", 0)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")


@pytest.fixture
def recorded(tmp_path):
    """A battery, a budget that keeps what runs cost, and how to see those."""
    path, battery = tmp_path / "p.json", SimulatedBattery()
    record(path, random_chains(1, 20))
    battery.about = SimulatedWorker("xavier").hello()["meter"]
    budget = Budget(1e9, meter=battery, record=True, network=chain(3, 4), profile=path)
    return battery, budget, lambda: Profile.load(path).runs
