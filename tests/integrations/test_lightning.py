"""Lightning's own trainer, ended before its battery is, with joules in its own loggers."""

import importlib.util
import json

import pytest
import torch
from tests.integrations.jobs import Draining, SimulatedBattery, logged_in, run_example

from ampere import Budget

# Lightning is imported by the tests: importing it takes four seconds of each process that collects them.
pytestmark = [
    pytest.mark.filterwarnings("ignore:the budget stops the job"),
    pytest.mark.skipif(
        not importlib.util.find_spec("lightning"),
        reason="Lightning is not installed: pip install 'ampere-energy[lightning]'",
    ),
]


def module(battery):
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = Draining(battery)

        def training_step(self, batch, index):
            return self.net(batch).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    return Module()


def loggers():
    from lightning.pytorch import loggers

    return loggers


def fit(folder, budget, battery, batches=60, logger=False, **options):
    import lightning

    from ampere.integrations.lightning import EnergyBudget

    callback = EnergyBudget(budget)
    trainer = lightning.Trainer(
        default_root_dir=folder,
        accelerator="cpu",
        max_epochs=1,
        callbacks=[callback],
        logger=logger,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        **{"log_every_n_steps": 1, **options},
    )
    trainer.fit(module(battery), torch.utils.data.DataLoader(torch.randn(batches, 4), batch_size=1))
    return trainer


def test_a_fit_ends_before_its_joules_do(tmp_path):
    battery, ended = SimulatedBattery(), []
    budget = Budget(20, meter=battery, on_stop=lambda b: ended.append(b.spent))
    trainer = fit(tmp_path, budget, battery)
    assert trainer.global_step == battery.drained == 20
    assert ended == [20]
    assert not budget.running


def test_a_fit_that_fits_is_left_alone(tmp_path):
    battery = SimulatedBattery()
    assert fit(tmp_path, Budget(100, meter=battery), battery).global_step == 60


def test_what_was_spent_is_in_the_checkpoint(tmp_path):
    from ampere.integrations.lightning import EnergyBudget

    battery = SimulatedBattery()
    trainer = fit(tmp_path, Budget(100, meter=battery), battery)
    trainer.save_checkpoint(tmp_path / "last.ckpt")
    kept = torch.load(tmp_path / "last.ckpt", weights_only=True)["callbacks"]["EnergyBudget"]
    again = Budget(100, meter=battery)
    EnergyBudget(again).load_state_dict(json.loads(json.dumps(kept)))
    assert (again.spent, again.steps_done) == (60, 60)


def test_joules_of_each_step_are_in_tensorboard(tmp_path):
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    battery = SimulatedBattery()
    logger = loggers().TensorBoardLogger(tmp_path)
    fit(tmp_path, Budget(20, meter=battery), battery, logger=logger)
    assert logged_in(tmp_path) == [(step, 1.0) for step in range(1, 21)]


def test_joules_of_each_step_are_in_weights_and_biases(tmp_path):
    pytest.importorskip("wandb", reason="Weights & Biases is not installed")
    battery = SimulatedBattery()
    logger = loggers().WandbLogger(project="ampere", save_dir=tmp_path, offline=True)
    fit(tmp_path, Budget(20, meter=battery), battery, logger=logger)
    summary = dict(logger.experiment.summary)
    logger.experiment.finish()
    assert summary["ampere/joules_spent"] == 20
    assert summary["ampere/joules_per_step"] == 1.0


def test_a_trainer_that_logs_nothing_is_guarded_all_the_same(tmp_path):
    battery = SimulatedBattery()
    logger = loggers().CSVLogger(tmp_path)
    fit(tmp_path, Budget(20, meter=battery), battery, logger=logger, log_every_n_steps=0)
    assert battery.drained == 20


def test_joules_are_logged_once_for_all_batches_that_are_accumulated(tmp_path):
    class Logger(loggers().CSVLogger):
        def log_metrics(self, metrics, step=None):
            if "ampere/joules_spent" in metrics:
                logged.append((step, metrics["ampere/joules_spent"]))

    battery, logged = SimulatedBattery(), []
    fit(tmp_path, Budget(100, meter=battery), battery, 12, Logger(tmp_path), accumulate_grad_batches=4)
    assert logged == [(1, 4), (2, 8), (3, 12)]


def test_a_fit_that_fails_is_no_run(recorded, tmp_path):
    battery, budget, runs = recorded
    battery.ends_at = 40
    with pytest.raises(ZeroDivisionError):
        fit(tmp_path, budget, battery)
    assert not budget.running
    assert runs() == ()
    battery.ends_at = None
    fit(tmp_path, budget, battery)
    [run] = runs()
    assert run.measurement.iterations <= 60


def test_the_example_runs_as_it_stands(tmp_path, monkeypatch, capsys):
    run_example("lightning_budget.py", tmp_path, monkeypatch)
    assert "J spent" in capsys.readouterr().out
