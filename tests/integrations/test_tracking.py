"""Estimates in MLflow and Weights & Biases, each through its own client and without a server."""

import json
from pathlib import Path

import pytest

from ampere.core import Meter
from ampere.estimation.estimate import Estimate, LayerShare
from ampere.estimation.running_costs import Tariff, parse_grids
from ampere.estimation.training_run import training_run
from ampere.integrations.tracking import log_to_mlflow, log_to_wandb, metrics_of, parameters_of

METER = Meter("cpu-time", False, "5 W per busy core")
LAYERS = (LayerShare("(step)", "step", 0.02, 0.0),)
PLAIN = Estimate("net", 0.02, 0.002, 0.004, LAYERS, (), (), METER, "system", device="a CPU")
RUN = training_run(PLAIN, 1000, tariff=Tariff(grids=parse_grids("DE")))
ESTIMATE = Estimate("net", 0.02, 0.002, 0.004, LAYERS, (), (), METER, "system", device="a CPU", run=RUN)


def test_metrics_and_parameters_have_the_run_and_say_that_joules_are_modelled():
    metrics = metrics_of(ESTIMATE)
    assert metrics["ampere/run_joules"] == pytest.approx(20)
    assert metrics["ampere/run_grams_co2e_Germany"] == pytest.approx(20 / 3.6e6 * 380.95)
    assert not any("run" in name for name in metrics_of(PLAIN))
    assert parameters_of(ESTIMATE)["ampere/joules"] == "modelled"
    assert parameters_of(ESTIMATE)["ampere/optimizer"] == "sgd"


def test_mlflow_keeps_parameters_metrics_and_the_report(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # it prefers a database, which needs more packages
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    with mlflow.start_run() as run:
        log_to_mlflow(ESTIMATE)
    kept = mlflow.get_run(run.info.run_id)
    assert kept.data.metrics["ampere/joules_per_iteration"] == pytest.approx(0.02)
    assert kept.data.params["ampere/device"] == "a CPU"
    folder = Path(kept.info.artifact_uri.removeprefix("file://")) / "ampere"
    assert "per iteration" in (folder / "estimate.html").read_text()
    assert json.loads((folder / "estimate.json").read_text())["total"]["iterations"] == 1000


def test_weights_and_biases_keeps_them_offline(tmp_path):
    wandb = pytest.importorskip("wandb", reason="Weights & Biases is not installed")
    with wandb.init(mode="offline", dir=str(tmp_path), project="ampere") as run:
        log_to_wandb(ESTIMATE, run)
        assert run.config["ampere/device"] == "a CPU"
        assert run.summary["ampere/run_joules"] == pytest.approx(20)
