import pytest


@pytest.fixture(autouse=True)
def every_step_is_read(monkeypatch):
    """Steps here take no time; real ones take longer than many readings."""
    monkeypatch.setattr("ampere.budget.counting.READINGS_APART", 0)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
