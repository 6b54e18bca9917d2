"""An estimate beside the run that it is of, in MLflow and Weights & Biases: parameters, metrics, and the report.

log_to_mlflow(estimate)          parameters and metrics of the active run; ampere/estimate.html and .json as artifacts
log_to_wandb(estimate, run)      config and summary of the run; ampere/estimate as HTML

A Budget's joules are logged as they are spent: `mlflow.log_metrics(budget.metrics(), step=...)`, or with the loggers of
Lightning and the Hugging Face Trainer.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ampere.core.errors import RuntimeMissingError

if TYPE_CHECKING:
    from ampere.estimation.estimate import Estimate

FOLDER = "ampere"
UNUSUAL = re.compile("[^A-Za-z0-9_. -]")  # characters that MLflow takes in no name


def parameters_of(estimate: Estimate) -> dict[str, Any]:
    """How the estimated training is done, and where its joules come from."""
    meter = estimate.meter
    origin = "simulated" if meter.simulated else "measured" if meter.measured else "modelled"
    about = {"device": estimate.device, "batch": estimate.batch, "meter": meter.name, "joules": origin}
    return {f"{FOLDER}/{name}": value for name, value in {**estimate.setup.to_json(), **about}.items()}


def metrics_of(estimate: Estimate) -> dict[str, float]:
    """Joules and seconds of an iteration, and of the whole run where one was asked about."""
    low, high = estimate.interval
    found = {
        "joules_per_iteration": estimate.joules,
        "joules_per_iteration_low": low,
        "joules_per_iteration_high": high,
        "seconds_per_iteration": estimate.seconds,
    }
    if run := estimate.run:
        found.update(run_joules=run.joules, run_seconds=run.seconds, run_kwh=run.kwh)
        for grid in run.tariff.grids:
            found[f"run_grams_co2e_{UNUSUAL.sub('_', grid.region)}"] = grid.grams_per_kwh * run.kwh
    return {f"{FOLDER}/{name}": value for name, value in found.items()}


def log_to_mlflow(estimate: Estimate) -> None:
    """Logs to the active run, or to a new one, as MLflow itself does."""
    try:
        import mlflow
    except ImportError:
        raise RuntimeMissingError("MLflow is not installed: pip install 'ampere-energy[tracking]'") from None
    mlflow.log_params(parameters_of(estimate))
    mlflow.log_metrics(metrics_of(estimate))
    mlflow.log_text(_page(estimate), f"{FOLDER}/estimate.html")
    mlflow.log_text(json.dumps(_record(estimate), indent=2), f"{FOLDER}/estimate.json")


def log_to_wandb(estimate: Estimate, run: Any = None) -> None:
    """Logs to a run of Weights & Biases, by default the one that `wandb.init` began."""
    try:
        import wandb
    except ImportError:
        raise RuntimeMissingError("Weights & Biases is not installed: pip install 'ampere-energy[tracking]'") from None
    run = run or wandb.run or wandb.init()
    run.config.update(parameters_of(estimate))
    run.summary.update(metrics_of(estimate))
    run.log({f"{FOLDER}/estimate": wandb.Html(_page(estimate))})


def _record(estimate: Estimate) -> dict[str, Any]:
    return {**estimate.to_json(), "total": estimate.run and estimate.run.to_json()}


def _page(estimate: Estimate) -> str:
    from ampere.reporting.documents import document

    return document(_record(estimate)).html()
