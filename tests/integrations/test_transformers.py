"""The Hugging Face Trainer, ended before its battery is, with joules in its own loggers."""

import importlib.util

import pytest
import torch
from tests.integrations.jobs import Draining, SimulatedBattery, logged_in, run_example
from torch import nn

from ampere import Budget

# Transformers is imported by the tests, not by each process that collects them.
pytestmark = [
    pytest.mark.filterwarnings("ignore:the budget stops the job"),
    pytest.mark.skipif(
        not all(importlib.util.find_spec(name) for name in ("accelerate", "transformers")),
        reason="the Trainer's packages are missing: pip install 'ampere-energy[transformers]'",
    ),
]


class Model(nn.Module):
    def __init__(self, battery):
        super().__init__()
        self.net = Draining(battery)

    def forward(self, x, labels=None):
        return {"loss": self.net(x).square().mean()}


def energy_budget(budget):
    from ampere.integrations.transformers import EnergyBudget

    return EnergyBudget(budget)


def trainer_of(folder, battery, **options):
    import transformers

    options = {"save_strategy": "no", "report_to": [], "num_train_epochs": 1, "logging_steps": 1, **options}
    arguments = transformers.TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=1,
        use_cpu=True,
        disable_tqdm=True,
        remove_unused_columns=False,
        **options,
    )
    rows = [{"x": torch.randn(4)} for _ in range(60)]
    return transformers.Trainer(Model(battery), arguments, train_dataset=rows)


def test_a_training_ends_before_its_joules_do_and_is_saved(tmp_path):
    battery = SimulatedBattery()
    trainer = trainer_of(tmp_path, battery, save_strategy="steps", save_steps=1000)
    budget = Budget(20, meter=battery)
    energy_budget(budget).watch(trainer)
    trainer.train()
    assert trainer.state.global_step == battery.drained == 20
    assert (tmp_path / "checkpoint-20").is_dir()
    assert not budget.running


def test_a_training_that_fits_is_left_alone(tmp_path):
    battery = SimulatedBattery()
    trainer = trainer_of(tmp_path, battery)
    trainer.add_callback(energy_budget(Budget(100, meter=battery)))
    trainer.train()
    assert trainer.state.global_step == 60


def test_joules_of_each_step_are_in_the_history_and_in_tensorboard(tmp_path):
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    battery = SimulatedBattery()
    trainer = trainer_of(tmp_path, battery, report_to=["tensorboard"])
    energy_budget(Budget(20, meter=battery)).watch(trainer)
    trainer.train()
    history = [row["ampere/joules_per_step"] for row in trainer.state.log_history if "ampere/joules_per_step" in row]
    assert history == [1.0] * 20
    assert len([row for row in trainer.state.log_history if "loss" in row]) == 20
    assert logged_in(tmp_path) == [(step, 1.0) for step in range(1, 21)]


def test_joules_are_in_the_history_of_each_epoch(tmp_path):
    battery = SimulatedBattery()
    trainer = trainer_of(tmp_path, battery, logging_strategy="epoch", num_train_epochs=2)
    energy_budget(Budget(500, meter=battery)).watch(trainer)
    trainer.train()
    history = trainer.state.log_history
    assert [row["ampere/joules_spent"] for row in history if "ampere/joules_spent" in row] == [60, 120]
    assert len([row for row in history if "loss" in row]) == 2


def test_an_attempt_that_failed_is_no_run_and_the_next_one_is(recorded, tmp_path):
    battery, budget, runs = recorded
    trainer = trainer_of(tmp_path, battery)
    trainer.add_callback(energy_budget(budget))
    battery.ends_at = 40
    with pytest.raises(ZeroDivisionError):
        trainer.train()
    battery.ends_at = None
    trainer.train()
    assert not budget.running
    assert budget.spent == 100
    [run] = runs()
    assert run.measurement.iterations <= 60


def test_the_example_runs_as_it_stands(tmp_path, monkeypatch, capsys):
    run_example("fine_tune_transformer.py", tmp_path, monkeypatch)
    assert "J spent" in capsys.readouterr().out
