"""A saved pruned model as a factory, so that a worker can train it: `ampere.pruning.rebuilding:build`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ampere.profiling.experiment import Experiment

from .result import Pruned
from .saving import load, save

FACTORY = "ampere.pruning.rebuilding:build"


def build(path: str, factory: str, arguments: dict[str, Any]) -> Any:
    """What the factory of the original makes, made into the pruned model that the file describes."""
    from ampere.worker.runtimes.torch_factory import find_factory

    model, inputs = find_factory(factory)(**arguments)
    return load(path, model), inputs


def experiment_of(pruned: Pruned, original: Any, path: Path) -> Experiment:
    """To be measured: saved at `path`, from the model that was loaded as `original`."""
    save(pruned, original.model, original.inputs, path)
    arguments = {"path": str(path), "factory": original.factory, "arguments": dict(original.arguments)}
    return Experiment(pruned.networks[1], {"factory": FACTORY, "arguments": arguments}, "network")
